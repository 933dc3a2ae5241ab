#include "bench/all_reduce/comparison.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <iterator>
#include <map>
#include <nlohmann/json.hpp>
#include <set>
#include <tuple>
#include <utility>

#include "base/median.h"
#include "bench/all_reduce/collective_call.h"
#include "bench/all_reduce/sizes.h"
#include "comm/all_reduce/auto.h"
#include "comm/all_reduce/strategies.h"

namespace ringlet::bench {

namespace {

bool same_work(const Comparison& comparison, const Measurement& m) {
  return std::tie(comparison.collective, comparison.ranks, comparison.machines, comparison.level,
                  comparison.type, comparison.op, comparison.root, comparison.in_place,
                  comparison.machine) == std::tie(m.collective, m.ranks, m.machines, m.level,
                                                  m.type, m.op, m.root, m.in_place, m.machine);
}

bool same_series(const Measurement& a, const Measurement& b) {
  return std::tie(a.engine, a.ranks_as, a.transport, a.strategy) ==
         std::tie(b.engine, b.ranks_as, b.transport, b.strategy);
}

/// Labels of series, with as many words as it takes to tell them apart.
class Labels {
 public:
  explicit Labels(const std::vector<Measurement>& measurements) {
    for (const Measurement& m : measurements) {
      ranks_as_[m.engine].insert(m.ranks_as);
      transports_[{m.engine, m.ranks_as}].insert(m.transport);
    }
  }
  std::string of(const Measurement& m) const {
    std::vector<std::string> more;
    if (ranks_as_.at(m.engine).size() > 1) more.push_back(m.ranks_as);
    if (transports_.at({m.engine, m.ranks_as}).size() > 1) more.push_back(m.transport);
    return fmt::format("{}{}{}", ranks_as_.size() > 1 ? m.engine + " " : "", m.strategy,
                       more.empty() ? "" : fmt::format(" ({})", fmt::join(more, ", ")));
  }

 private:
  std::map<std::string, std::set<std::string>> ranks_as_;  // of each engine
  std::map<std::pair<std::string, std::string>, std::set<std::string>> transports_;
};

void add(Comparison& comparison, const Measurement& m, const Labels& labels) {
  for (Series& series : comparison.series) {
    if (!same_series(series.rows.front(), m)) continue;
    series.rows.push_back(m);
    return;
  }
  comparison.series.push_back({labels.of(m), {m}, {}, {}});
}

/// The quickest row of each size that decides; `rows` are in ascending order of size.
std::vector<Measurement> quickest_of(const std::vector<Measurement>& rows) {
  std::vector<Measurement> quickest;
  for (const Measurement& m : rows) {
    if (!m.decides()) continue;
    if (quickest.empty() || quickest.back().bytes != m.bytes) {
      quickest.push_back(m);
    } else if (m.median_us < quickest.back().median_us) {
      quickest.back() = m;
    }
  }
  return quickest;
}

/// The cost of another collective than all-reduce: of Ringlet's algorithm, which is known.
comm::PathCostOf cost_of_its_own(const Measurement& row) {
  if (row.engine != Measurement().engine) return comm::cost_of_one_message;
  return [id = find_collective(row.collective)->id](int ranks, double bytes) {
    return path_cost_of(id, ranks, bytes);
  };
}

/// The strategy's cost over what the row was measured on. Between machines all ranks of a machine
/// share a link, whose latency and bandwidth are then what is fitted. A strategy chose its way over
/// it by round figures.
comm::PathCostOf cost_of(const comm::Strategy& strategy, const Measurement& row) {
  if (row.machines == 1 || row.level != Measurement().level) return strategy.path_cost;
  return [strategy, machines = row.machines](int ranks, double bytes) {
    const int each = (ranks + machines - 1) / machines;
    return strategy.costs_of_levels(machines, each, bytes, comm::kEthernetCosts).between;
  };
}

void fit(Series& series) {
  std::stable_sort(series.rows.begin(), series.rows.end(),
                   [](const auto& a, const auto& b) { return a.bytes < b.bytes; });
  series.curve = quickest_of(series.rows);
  if (series.picks()) return;
  std::vector<comm::CostPoint> points;
  for (const Measurement& m : series.curve) {
    points.push_back({m.ranks, static_cast<double>(m.bytes), 1e-6 * m.median_us});
  }
  const Measurement& row = series.rows.front();
  const comm::Strategies known;
  const comm::Strategy* strategy = known.find(row.strategy);
  if (row.collective != Measurement().collective) {
    series.path_cost = cost_of_its_own(row);
  } else if (strategy != nullptr) {
    series.path_cost = cost_of(*strategy, row);
  }
  series.fit = comm::fit_cost_model(series.path_cost, points);
}

/// The median at a measured size, or infinity.
double median_at(const Series& series, std::int64_t bytes) {
  const Measurement* const row = series.at(bytes);
  return row == nullptr ? INFINITY : row->median_us;
}

/// The size at which two curves meet between two measured sizes, on straight lines over logarithms.
/// Nothing where a curve lacks one of the sizes, and where they do not cross.
std::optional<double> meeting(const Series& before, const Series& after, std::int64_t low,
                              std::int64_t high) {
  const double gap_low = std::log(median_at(after, low) / median_at(before, low));
  const double gap_high = std::log(median_at(after, high) / median_at(before, high));
  if (!std::isfinite(gap_low) || !std::isfinite(gap_high) || gap_low == gap_high) return {};
  const double part = gap_low / (gap_low - gap_high);
  if (part < 0 || part > 1) return {};  // of equal ones
  const auto from = static_cast<double>(low), to = static_cast<double>(high);
  return from * std::pow(to / from, part);
}

using Indices = std::vector<std::size_t>;

/// The row of this size that decides and has the least median; null where there is none.
const Measurement* quickest_at(const std::vector<Series>& series, std::int64_t bytes) {
  const Measurement* best = nullptr;
  for (const Series& one : series) {
    const Measurement* const row = one.picks() ? nullptr : one.at(bytes);
    if (row != nullptr && (best == nullptr || row->median_us < best->median_us)) best = row;
  }
  return best;
}

/// The strategies that are equal to the fastest one at this size, that one among them.
Indices leaders_at(const std::vector<Series>& series, const Measurement& best) {
  Indices leaders;
  for (std::size_t i = 0; i < series.size(); ++i) {
    const Measurement* const row = series[i].picks() ? nullptr : series[i].at(best.bytes);
    if (row != nullptr && (row == &best || are_equal(*row, best))) leaders.push_back(i);
  }
  return leaders;
}

/// Whether a row that does not count might be the fastest: other work only makes calls longer.
bool is_open(const std::vector<Series>& series, std::int64_t bytes, const Measurement* best) {
  if (best == nullptr) return true;
  const double most = std::max(best->median_us, best->high_us);
  return std::any_of(series.begin(), series.end(), [&](const Series& one) {
    if (one.picks() || one.at(bytes) != nullptr) return false;
    return std::any_of(one.rows.begin(), one.rows.end(), [&](const Measurement& row) {
      return row.bytes == bytes && row.right() && row.min_us <= most;
    });
  });
}

/// Makes the series with the least medians over the sizes the first of a stretch's.
void choose_first(Stretch& stretch, Indices leaders, const std::vector<Series>& series) {
  const auto sum = [&](std::size_t index) {  // of logarithms: each size counts alike
    double logarithms = 0;
    for (const Measurement& m : series[index].curve) {
      const bool within = stretch.from <= m.bytes && m.bytes <= stretch.to;
      if (within) logarithms += std::log(m.median_us);
    }
    return logarithms;
  };
  const auto first = std::min_element(leaders.begin(), leaders.end(),
                                      [&](auto a, auto b) { return sum(a) < sum(b); });
  stretch.series = *first;
  leaders.erase(first);
  stretch.equals = std::move(leaders);
}

/// Each stretch goes on as long as some strategy leads at all of its sizes. Adds open sizes to
/// `open`.
std::vector<Stretch> fastest_of(const std::vector<Series>& series,
                                std::vector<std::int64_t>& open) {
  std::set<std::int64_t> sizes;
  for (const Series& one : series) {
    if (one.picks()) continue;
    for (const Measurement& m : one.rows) sizes.insert(m.bytes);
  }
  std::vector<Stretch> stretches;
  std::vector<Indices> leaders;  // of each stretch
  for (const std::int64_t bytes : sizes) {
    const Measurement* const best = quickest_at(series, bytes);
    if (is_open(series, bytes, best)) {
      open.push_back(bytes);
      continue;
    }
    const Indices here = leaders_at(series, *best);
    Indices still;
    if (!leaders.empty()) {
      std::ranges::set_intersection(leaders.back(), here, std::back_inserter(still));
    }
    if (still.empty()) {
      stretches.push_back({0, bytes, bytes});
      leaders.push_back(here);
    } else {
      stretches.back().to = bytes;
      leaders.back() = still;
    }
  }
  for (std::size_t i = 0; i < stretches.size(); ++i) {
    Stretch& stretch = stretches[i];
    choose_first(stretch, leaders[i], series);
    if (i == 0) continue;
    const Stretch& last = stretches[i - 1];
    stretch.begins_at = meeting(series[last.series], series[stretch.series], last.to, stretch.from);
  }
  return stretches;
}

bool carried_alike(const Measurement& a, const Measurement& b) {
  return std::tie(a.engine, a.ranks_as, a.transport) == std::tie(b.engine, b.ranks_as, b.transport);
}

/// The regret of the series with this index; nothing where no strategy has one of its sizes.
std::optional<Regret> regret_of(std::size_t index, const std::vector<Series>& series) {
  std::vector<double> ratios;
  Regret regret{.series = index};
  for (const Measurement& row : series[index].curve) {
    double best = INFINITY;
    for (const Series& other : series) {
      if (other.picks() || !carried_alike(other.rows.front(), row)) continue;
      best = std::min(best, median_at(other, row.bytes));
    }
    if (!std::isfinite(best)) continue;
    const double ratio = ratios.emplace_back(row.median_us / best);
    if (ratio < regret.worst) continue;
    regret.worst = ratio;
    regret.worst_bytes = row.bytes;
  }
  if (ratios.empty()) return {};
  regret.median = median_of(std::move(ratios));
  return regret;
}

}  // namespace

bool are_equal(const Measurement& a, const Measurement& b) {
  if (!a.has_interval() || !b.has_interval()) return false;
  const auto [least, most] = std::minmax(a.median_us, b.median_us);
  return most <= kAlike * least || (a.low_us <= b.high_us && b.low_us <= a.high_us);
}

const Measurement* Series::at(std::int64_t bytes) const {
  const auto row = std::find_if(curve.begin(), curve.end(),
                                [&](const Measurement& m) { return m.bytes == bytes; });
  return row == curve.end() ? nullptr : &*row;
}

bool Series::picks() const {
  const Measurement& row = rows.front();
  return row.engine == Measurement().engine && row.strategy == comm::AutoAllReduce::kName;
}

double Series::predicted_seconds(double bytes) const {
  return comm::predicted_seconds(path_cost, rows.front().ranks, bytes, fit->model);
}

std::vector<Comparison> compare(const std::vector<Measurement>& measurements) {
  const Labels labels(measurements);
  std::vector<Comparison> comparisons;
  for (const Measurement& m : measurements) {
    auto same = std::find_if(comparisons.begin(), comparisons.end(),
                             [&](const auto& comparison) { return same_work(comparison, m); });
    if (same == comparisons.end()) {
      same = comparisons.insert(same, {m.collective, m.ranks, m.machines, m.level, m.type, m.op,
                                       m.root, m.in_place, m.machine});
    }
    add(*same, m, labels);
  }
  for (Comparison& comparison : comparisons) {
    for (Series& series : comparison.series) fit(series);
    comparison.fastest = fastest_of(comparison.series, comparison.open);
    for (std::size_t i = 0; i < comparison.series.size(); ++i) {
      if (!comparison.series[i].picks()) continue;
      if (const auto regret = regret_of(i, comparison.series))
        comparison.regrets.push_back(*regret);
    }
  }
  return comparisons;
}

std::vector<Stretch> fastest_by_models(const Comparison& comparison) {
  if (comparison.fastest.empty()) return {};
  constexpr int kPoints = 2000;  // a third of a percent apart from 4 KiB to 64 MiB
  const auto low = static_cast<double>(comparison.fastest.front().from);
  const auto high = static_cast<double>(comparison.fastest.back().to);
  std::vector<Stretch> stretches;
  for (int i = 0; i < kPoints; ++i) {
    const double bytes = low * std::pow(high / low, static_cast<double>(i) / (kPoints - 1));
    std::optional<std::size_t> best;
    for (std::size_t k = 0; k < comparison.series.size(); ++k) {
      const Series& series = comparison.series[k];
      if (!series.fit) continue;
      if (!best ||
          series.predicted_seconds(bytes) < comparison.series[*best].predicted_seconds(bytes)) {
        best = k;
      }
    }
    if (!best) return {};
    const auto whole = static_cast<std::int64_t>(std::llround(bytes));
    if (!stretches.empty() && stretches.back().series == *best) {
      stretches.back().to = whole;
    } else {
      stretches.push_back({*best, whole, whole});
      if (stretches.size() > 1) stretches.back().begins_at = bytes;
    }
  }
  return stretches;
}

}  // namespace ringlet::bench
