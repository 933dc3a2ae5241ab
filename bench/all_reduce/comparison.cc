#include "bench/all_reduce/comparison.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <map>
#include <nlohmann/json.hpp>
#include <set>
#include <tuple>
#include <utility>

#include "bench/all_reduce/sizes.h"
#include "comm/all_reduce/auto.h"
#include "comm/all_reduce/strategies.h"

namespace ringlet::bench {

namespace {

bool same_work(const Comparison& comparison, const Measurement& m) {
  return std::tie(comparison.ranks, comparison.machines, comparison.level, comparison.type,
                  comparison.op, comparison.in_place) ==
         std::tie(m.ranks, m.machines, m.level, m.type, m.op, m.in_place);
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

/// The quickest row of each size; `rows` are in ascending order of size.
std::vector<Measurement> quickest_of(const std::vector<Measurement>& rows) {
  std::vector<Measurement> quickest;
  for (const Measurement& m : rows) {
    if (quickest.empty() || quickest.back().bytes != m.bytes) {
      quickest.push_back(m);
    } else if (m.median_us < quickest.back().median_us) {
      quickest.back() = m;
    }
  }
  return quickest;
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
  const comm::Strategies known;
  const comm::Strategy* strategy = known.find(series.rows.front().strategy);
  if (strategy != nullptr) series.path_cost = cost_of(*strategy, series.rows.front());
  series.fit = comm::fit_cost_model(series.path_cost, points);
}

/// The median at a measured size, or infinity.
double median_at(const Series& series, std::int64_t bytes) {
  for (const Measurement& m : series.curve) {
    if (m.bytes == bytes) return m.median_us;
  }
  return INFINITY;
}

/// The size at which two curves meet between two measured sizes, on straight lines over logarithms.
/// Nothing where a curve lacks one of the sizes.
std::optional<double> meeting(const Series& before, const Series& after, std::int64_t low,
                              std::int64_t high) {
  const double gap_low = std::log(median_at(after, low) / median_at(before, low));
  const double gap_high = std::log(median_at(after, high) / median_at(before, high));
  if (!std::isfinite(gap_low) || !std::isfinite(gap_high) || gap_low == gap_high) return {};
  const double part = gap_low / (gap_low - gap_high);
  const auto from = static_cast<double>(low), to = static_cast<double>(high);
  return from * std::pow(to / from, part);
}

std::vector<Stretch> fastest_of(const std::vector<Series>& series) {
  std::set<std::int64_t> sizes;
  for (const Series& one : series) {
    if (one.picks()) continue;
    for (const Measurement& m : one.rows) sizes.insert(m.bytes);
  }
  std::vector<Stretch> stretches;
  for (const std::int64_t bytes : sizes) {
    const auto time = [&](const Series& one) {
      return one.picks() ? INFINITY : median_at(one, bytes);
    };
    const auto best = std::min_element(series.begin(), series.end(),
                                       [&](auto& a, auto& b) { return time(a) < time(b); });
    const auto index = static_cast<std::size_t>(best - series.begin());
    if (!stretches.empty() && stretches.back().series == index) {
      stretches.back().to = bytes;
      continue;
    }
    Stretch next{index, bytes, bytes};
    if (!stretches.empty()) {
      const Stretch& last = stretches.back();
      next.begins_at = meeting(series[last.series], *best, last.to, bytes);
    }
    stretches.push_back(next);
  }
  return stretches;
}

bool carried_alike(const Measurement& a, const Measurement& b) {
  return std::tie(a.engine, a.ranks_as, a.transport) == std::tie(b.engine, b.ranks_as, b.transport);
}

/// The regret of the series with this index; nothing where no strategy has one of its sizes.
std::optional<Regret> regret_of(std::size_t index, const std::vector<Series>& series) {
  std::vector<std::pair<double, std::int64_t>> ratios;  // with their sizes
  for (const Measurement& row : series[index].curve) {
    double best = INFINITY;
    for (const Series& other : series) {
      if (other.picks() || !carried_alike(other.rows.front(), row)) continue;
      best = std::min(best, median_at(other, row.bytes));
    }
    if (std::isfinite(best)) ratios.emplace_back(row.median_us / best, row.bytes);
  }
  if (ratios.empty()) return {};
  std::sort(ratios.begin(), ratios.end());
  const auto& [worst, bytes] = ratios.back();
  return Regret{index, ratios[ratios.size() / 2].first, worst, bytes};
}

}  // namespace

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
      same = comparisons.insert(same, {m.ranks, m.machines, m.level, m.type, m.op, m.in_place});
    }
    add(*same, m, labels);
  }
  for (Comparison& comparison : comparisons) {
    for (Series& series : comparison.series) fit(series);
    comparison.fastest = fastest_of(comparison.series);
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

std::string rough_size(double bytes) {
  constexpr double kUnit = 1024;
  const char* suffix = "";
  for (const char* next : {"K", "M", "G"}) {
    if (bytes < kUnit) break;
    bytes /= kUnit;
    suffix = next;
  }
  const int decimals = bytes >= 100 || bytes == std::floor(bytes) ? 0 : bytes >= 10 ? 1 : 2;
  return fmt::format("{:.{}f}{}", bytes, decimals, suffix);
}

namespace {

std::string text_of(const Stretch& stretch, const Comparison& comparison) {
  const std::string sizes = stretch.from == stretch.to
                                ? size_text(stretch.from)
                                : size_text(stretch.from) + " to " + size_text(stretch.to);
  const std::string begin =
      stretch.begins_at ? fmt::format(" (from about {})", rough_size(*stretch.begins_at)) : "";
  return fmt::format("{} {}{}", sizes, comparison.series[stretch.series].label, begin);
}

}  // namespace

int label_width(const Comparison& comparison) {
  int width = kStrategyWidth;
  for (const Series& series : comparison.series) {
    width = std::max(width, static_cast<int>(series.label.size()));
  }
  return width;
}

std::string to_text(const Regret& regret, const Comparison& comparison) {
  return fmt::format(
      "{} takes {:.2f} times the best strategy's time in the median, at worst {:.2f} times ({})",
      comparison.series[regret.series].label, regret.median, regret.worst,
      size_text(regret.worst_bytes));
}

std::string to_text(const Comparison& comparison) {
  const int width = label_width(comparison);
  std::string text;
  for (const Stretch& stretch : comparison.fastest) {
    text += (text.empty() ? "fastest: " : "; ") + text_of(stretch, comparison);
  }
  if (!text.empty()) text += "\n";
  for (const Regret& regret : comparison.regrets) text += to_text(regret, comparison) + "\n";
  bool any = false;
  for (const Series& series : comparison.series) {
    if (!series.fit) continue;
    if (!any) {
      text += fmt::format("{:<{}} {:>12} {:>12} {:>14}\n", "model", width, "latency us", "GB/s",
                          "off by (worst)");
    }
    any = true;
    const comm::CostModel& model = series.fit->model;
    text += fmt::format(
        "{:<{}} {:>12.3f} {:>12} {:>14}\n", series.label, width, 1e6 * model.latency_s,
        model.seconds_per_byte > 0 ? fmt::format("{:.2f}", 1e-9 / model.seconds_per_byte) : "-",
        fmt::format("{:.0f} % ({:.0f} %)", 100 * series.fit->median_error,
                    100 * series.fit->worst_error));
  }
  return text;
}

namespace {

/// What tells a series from all others.
nlohmann::json identity_of(const Series& series) {
  const Measurement& row = series.rows.front();
  return {{"engine", row.engine},
          {"ranks_as", row.ranks_as},
          {"transport", row.transport},
          {"strategy", row.strategy},
          {"ranks", row.ranks},
          {"type", row.type},
          {"op", row.op},
          {"in_place", row.in_place}};
}

}  // namespace

nlohmann::json models_json(const std::vector<Comparison>& comparisons) {
  nlohmann::json models = nlohmann::json::array();
  for (const Comparison& comparison : comparisons) {
    for (const Series& series : comparison.series) {
      if (!series.fit) continue;
      nlohmann::json model = identity_of(series);
      model.update({{"latency_s", series.fit->model.latency_s},
                    {"seconds_per_byte", series.fit->model.seconds_per_byte},
                    {"median_error", series.fit->median_error},
                    {"worst_error", series.fit->worst_error}});
      models.push_back(std::move(model));
    }
  }
  return models;
}

nlohmann::json fastest_json(const std::vector<Comparison>& comparisons) {
  nlohmann::json fastest = nlohmann::json::array();
  for (const Comparison& comparison : comparisons) {
    for (const Stretch& stretch : comparison.fastest) {
      nlohmann::json entry = identity_of(comparison.series[stretch.series]);
      entry.update({{"from_bytes", stretch.from}, {"to_bytes", stretch.to}});
      if (stretch.begins_at) entry["begins_at_bytes"] = *stretch.begins_at;
      fastest.push_back(std::move(entry));
    }
  }
  return fastest;
}

nlohmann::json regrets_json(const std::vector<Comparison>& comparisons) {
  nlohmann::json regrets = nlohmann::json::array();
  for (const Comparison& comparison : comparisons) {
    for (const Regret& regret : comparison.regrets) {
      nlohmann::json entry = identity_of(comparison.series[regret.series]);
      entry.update({{"median", regret.median},
                    {"worst", regret.worst},
                    {"worst_bytes", regret.worst_bytes}});
      regrets.push_back(std::move(entry));
    }
  }
  return regrets;
}

}  // namespace ringlet::bench
