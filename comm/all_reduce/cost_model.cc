#include "comm/all_reduce/cost_model.h"

#include <algorithm>
#include <cmath>
#include <utility>
#include <vector>

#include "base/median.h"

namespace ringlet::comm {

PathCost cost_of_one_message(int /*ranks*/, double bytes) { return {1, bytes, bytes}; }

double seconds_of(const PathCost& path, const CostModel& model) {
  return path.steps * model.latency_s + path.bytes * model.seconds_per_byte +
         path.reduced_bytes * model.seconds_per_reduced_byte;
}

double predicted_seconds(const PathCostOf& path_cost, int ranks, double bytes,
                         const CostModel& model) {
  return ranks < 2 ? 0 : seconds_of(path_cost(ranks, bytes), model);
}

namespace {

/// A point for the least squares, divided by its seconds: steps a + bytes b should be 1.
struct Row {
  double steps;
  double bytes;
};

std::vector<Row> rows_of(const PathCostOf& path_cost, std::span<const CostPoint> points) {
  std::vector<Row> rows;
  for (const CostPoint& point : points) {
    if (!(point.seconds > 0) || !(point.bytes > 0) || point.ranks < 2) continue;
    const PathCost path = path_cost(point.ranks, point.bytes);
    rows.push_back({path.steps / point.seconds, path.bytes / point.seconds});
  }
  return rows;
}

/// A first guess: the latency alone explains the quickest step, the bytes the quickest byte.
CostModel guess(const std::vector<Row>& rows) {
  CostModel model{INFINITY, INFINITY, 0};
  for (const Row& row : rows) {
    model.latency_s = std::min(model.latency_s, 1 / row.steps);
    model.seconds_per_byte = std::min(model.seconds_per_byte, 1 / row.bytes);
  }
  return model;
}

/// One step of Gauss and Newton towards sum log(steps a + bytes b)^2 = min, in log a and log b,
/// which keeps both positive. Returns how far it went.
double improve(const std::vector<Row>& rows, CostModel& model) {
  constexpr double kDamping = 1e-9;  // where one of the two explains nothing
  constexpr double kLongest = 1;     // the sum is no parabola far from its least
  double aa = kDamping, ab = 0, bb = kDamping, a1 = 0, b1 = 0;
  for (const Row& row : rows) {
    const double predicted = row.steps * model.latency_s + row.bytes * model.seconds_per_byte;
    const double share = row.steps * model.latency_s / predicted;
    const double miss = -std::log(predicted);
    aa += share * share;
    ab += share * (1 - share);
    bb += (1 - share) * (1 - share);
    a1 += share * miss;
    b1 += (1 - share) * miss;
  }
  const double determinant = aa * bb - ab * ab;
  const double a = std::clamp((a1 * bb - b1 * ab) / determinant, -kLongest, kLongest);
  const double b = std::clamp((b1 * aa - a1 * ab) / determinant, -kLongest, kLongest);
  model.latency_s *= std::exp(a);
  model.seconds_per_byte *= std::exp(b);
  return std::abs(a) + std::abs(b);
}

/// Sets a number to 0 that contributes nothing to any point.
void drop_what_explains_nothing(const std::vector<Row>& rows, CostModel& model) {
  constexpr double kNothing = 1e-6;
  double steps = 0, bytes = 0;
  for (const Row& row : rows) {
    steps = std::max(steps, row.steps * model.latency_s);
    bytes = std::max(bytes, row.bytes * model.seconds_per_byte);
  }
  if (steps < kNothing) model.latency_s = 0;
  if (bytes < kNothing) model.seconds_per_byte = 0;
}

CostModel solve(const std::vector<Row>& rows) {
  constexpr int kMostSteps = 100;
  constexpr double kEnough = 1e-12;
  CostModel model = guess(rows);
  for (int step = 0; step < kMostSteps && improve(rows, model) > kEnough;) ++step;
  drop_what_explains_nothing(rows, model);
  return model;
}

}  // namespace

std::optional<CostFit> fit_cost_model(const PathCostOf& path_cost,
                                      std::span<const CostPoint> points) {
  const auto sizes = std::minmax_element(points.begin(), points.end(),
                                         [](auto& a, auto& b) { return a.bytes < b.bytes; });
  if (points.empty() || sizes.first->bytes == sizes.second->bytes) return {};
  const std::vector<Row> rows = rows_of(path_cost, points);
  if (rows.size() < 2) return {};
  CostFit fit{solve(rows), 0, 0};
  std::vector<double> errors;
  for (const Row& row : rows) {
    errors.push_back(
        std::abs(row.steps * fit.model.latency_s + row.bytes * fit.model.seconds_per_byte - 1));
  }
  fit.worst_error = *std::max_element(errors.begin(), errors.end());
  fit.median_error = median_of(std::move(errors));
  return fit;
}

}  // namespace ringlet::comm
