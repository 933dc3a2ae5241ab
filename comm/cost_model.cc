#include "comm/cost_model.h"

#include <algorithm>
#include <bit>
#include <cmath>
#include <utility>
#include <vector>

namespace ringlet::comm {

namespace {

/// ceil(log2(ranks))
double levels_of(int ranks) { return std::bit_width(static_cast<unsigned>(ranks - 1)); }

/// A strategy for powers of two: `path` on the largest one, and the others folded in and out.
template <class Path>
PathCost folded(int ranks, double bytes, Path path) {
  const int power = static_cast<int>(std::bit_floor(static_cast<unsigned>(ranks)));
  PathCost cost = path(power, levels_of(power));
  if (power == ranks) return cost;
  return {cost.steps + 2, cost.bytes + 2 * bytes, cost.reduced_bytes + bytes};
}

}  // namespace

PathCost path_cost(std::string_view strategy, int ranks, double bytes) {
  if (ranks < 2) return {};
  const double p = ranks, lg = levels_of(ranks);
  const double scattered = bytes * (p - 1) / p;
  if (strategy == "naive") return {2 * (p - 1), 2 * (p - 1) * bytes, (p - 1) * bytes};
  if (strategy == "tree") return {2 * lg, 2 * lg * bytes, lg * bytes};
  if (strategy == "ring" || strategy == "nccl") return {2 * (p - 1), 2 * scattered, scattered};
  if (strategy == "library") return {2 * (p - 1), 2 * bytes, bytes};
  if (strategy == "one-shot") return {1, (p - 1) * bytes, (p - 1) * bytes};
  if (strategy == "two-shot") return {2, 2 * scattered, scattered};
  if (strategy == "doubling") {
    return folded(ranks, bytes, [&](int, double levels) {
      return PathCost{levels, levels * bytes, levels * bytes};
    });
  }
  if (strategy == "halving-doubling") {
    return folded(ranks, bytes, [&](int power, double levels) {
      const double halves = bytes * (power - 1) / power;
      return PathCost{2 * levels, 2 * halves, halves};
    });
  }
  return {1, bytes, bytes};
}

double predicted_seconds(std::string_view strategy, int ranks, double bytes,
                         const CostModel& model) {
  const PathCost path = path_cost(strategy, ranks, bytes);
  return path.steps * model.latency_s + path.bytes * model.seconds_per_byte +
         path.reduced_bytes * model.seconds_per_reduced_byte;
}

namespace {

/// The rows of the least squares: steps a + bytes b = 1, all divided by the measured seconds.
struct Row {
  double steps;
  double bytes;
};

std::vector<Row> rows_of(std::string_view strategy, std::span<const CostPoint> points) {
  std::vector<Row> rows;
  for (const CostPoint& point : points) {
    if (!(point.seconds > 0) || point.ranks < 2) continue;
    const PathCost path = path_cost(strategy, point.ranks, point.bytes);
    rows.push_back({path.steps / point.seconds, path.bytes / point.seconds});
  }
  return rows;
}

CostModel solve(const std::vector<Row>& rows) {
  double ss = 0, sb = 0, bb = 0, s1 = 0, b1 = 0;
  for (const Row& row : rows) {
    ss += row.steps * row.steps;
    sb += row.steps * row.bytes;
    bb += row.bytes * row.bytes;
    s1 += row.steps;
    b1 += row.bytes;
  }
  const double determinant = ss * bb - sb * sb;
  const double a = (s1 * bb - b1 * sb) / determinant;
  const double b = (b1 * ss - s1 * sb) / determinant;
  if (a < 0) return {0, b1 / bb, 0};  // the best on the border of what can be
  if (b < 0) return {s1 / ss, 0, 0};
  return {a, b, 0};
}

}  // namespace

std::optional<CostFit> fit_cost_model(std::string_view strategy,
                                      std::span<const CostPoint> points) {
  const auto sizes = std::minmax_element(points.begin(), points.end(),
                                         [](auto& a, auto& b) { return a.bytes < b.bytes; });
  if (points.empty() || sizes.first->bytes == sizes.second->bytes) return {};
  const std::vector<Row> rows = rows_of(strategy, points);
  if (rows.size() < 2) return {};
  CostFit fit{solve(rows), 0, 0};
  std::vector<double> errors;
  for (const Row& row : rows) {
    errors.push_back(
        std::abs(row.steps * fit.model.latency_s + row.bytes * fit.model.seconds_per_byte - 1));
  }
  std::sort(errors.begin(), errors.end());
  fit.median_error = errors[errors.size() / 2];
  fit.worst_error = errors.back();
  return fit;
}

std::optional<double> crossover_bytes(const ModeledStrategy& small, const ModeledStrategy& large,
                                      int ranks) {
  // Both are lines in the bytes: what they take for none, and what for one more.
  const auto line = [ranks](const ModeledStrategy& strategy) {
    const double none = predicted_seconds(strategy.name, ranks, 0, strategy.model);
    const double one = predicted_seconds(strategy.name, ranks, 1, strategy.model) - none;
    return std::pair{none, one};
  };
  const auto [small_none, small_byte] = line(small);
  const auto [large_none, large_byte] = line(large);
  if (!(small_none < large_none) || !(large_byte < small_byte)) return {};
  return (large_none - small_none) / (small_byte - large_byte);
}

}  // namespace ringlet::comm
