// What a comparison says: to people, and to programs.
#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <nlohmann/json.hpp>

#include "bench/all_reduce/collective.h"
#include "bench/all_reduce/comparison.h"
#include "bench/all_reduce/sizes.h"

namespace ringlet::bench {

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
  return fmt::format("{} {}{}", sizes, names_of(stretch, comparison), begin);
}

}  // namespace

std::string names_of(const Stretch& stretch, const Comparison& comparison) {
  std::string names = comparison.series[stretch.series].label;
  for (std::size_t i = 0; i < stretch.equals.size(); ++i) {
    const bool is_last = i + 1 == stretch.equals.size();
    names += (is_last ? " and " : ", ") + comparison.series[stretch.equals[i]].label;
  }
  return names;
}

std::string work_text(const Measurement& row) {
  const Collective* const kind = find_collective(row.collective);
  std::string what = row.collective == Measurement().collective ? "" : row.collective;
  if (kind != nullptr && kind->has_root) {
    what += fmt::format(" {} rank {}", kind->reduces ? "to" : "from", row.root);
  }
  return fmt::format("{}{}{}{} {}", what, what.empty() ? "" : ", ", row.type,
                     row.op == kNoOperation ? "" : " " + row.op,
                     row.in_place ? "in place" : "out of place");
}

std::string work_text(const Comparison& comparison) {
  return work_text(comparison.series.front().rows.front());
}

std::string where_text(const std::string& machine) {
  return machine.empty() ? "" : ", on " + machine;
}

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

std::string open_text(const Comparison& comparison) {
  std::vector<std::string> sizes;
  for (const std::int64_t bytes : comparison.open) sizes.push_back(size_text(bytes));
  return fmt::format("open, as rows do not count: {}", fmt::join(sizes, ", "));
}

std::string to_text(const Comparison& comparison) {
  const int width = label_width(comparison);
  std::string text;
  for (const Stretch& stretch : comparison.fastest) {
    if (comparison.series.size() == 1) break;  // there is nothing to choose from
    text += (text.empty() ? "fastest: " : "; ") + text_of(stretch, comparison);
  }
  if (!text.empty()) text += "\n";
  if (!comparison.open.empty()) text += open_text(comparison) + "\n";
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
        series.knows_error() ? fmt::format("{:.0f} % ({:.0f} %)", 100 * series.fit->median_error,
                                           100 * series.fit->worst_error)
                             : "-");
  }
  return text;
}

namespace {

/// What tells a series from all others.
nlohmann::json identity_of(const Series& series) {
  const Measurement& row = series.rows.front();
  nlohmann::json identity = {{"engine", row.engine},     {"collective", row.collective},
                             {"ranks_as", row.ranks_as}, {"transport", row.transport},
                             {"strategy", row.strategy}, {"ranks", row.ranks},
                             {"type", row.type},         {"op", row.op},
                             {"in_place", row.in_place}};
  if (row.root != kNoRoot) identity["root"] = row.root;
  return identity;
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
      entry["equal"] = nlohmann::json::array();
      for (const std::size_t equal : stretch.equals) {
        entry["equal"].push_back(identity_of(comparison.series[equal]));
      }
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
