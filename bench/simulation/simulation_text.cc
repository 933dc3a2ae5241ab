#include <fmt/format.h>

#include <algorithm>
#include <span>

#include "bench/all_reduce/comparison.h"
#include "bench/all_reduce/sizes.h"
#include "bench/simulation/simulation.h"

namespace ringlet::bench {

namespace {

/// The rows of one layout and size.
using Table = std::span<const Simulated>;

bool has_measured(const Simulated& row) { return row.measured.has_value(); }

std::string heading_of(const Simulated& row, const Costs& costs) {
  const Layout& layout = row.layout;
  const std::string where = layout.machines == 1
                                ? fmt::format("{} ranks on one machine", layout.ranks())
                                : fmt::format("{} ranks, {} on each of {} machines", layout.ranks(),
                                              layout.each, layout.machines);
  return fmt::format("{}, {} of f32 on each: {}\n", where, bytes_text(row.bytes),
                     costs.to_text(layout));
}

template <class... Words>
std::string line_of(const std::string& strategy, const Words&... words) {
  std::string line = fmt::format("{:<{}} {:>10} {:>10} {:>8} {:>10} {:>13}  {:>10} {:>8}", strategy,
                                 kStrategyWidth, words...);
  line.erase(line.find_last_not_of(' ') + 1);
  return line + "\n";
}

std::string line_of(const Simulated& row, const Costs& costs) {
  if (!row.why_not.empty()) {
    return fmt::format("{:<{}} {:>10}  {}\n", row.strategy, kStrategyWidth, "-", row.why_not);
  }
  std::string measured, error;
  if (row.measured) {
    measured = seconds_text(1e-6 * row.measured->median_us);
    error = fmt::format("{:+.1f} %", 100 * row.error());
    const auto fit = costs.worst_error(row.strategy, row.layout);
    if (fit) error += fmt::format(", fit {:.1f} %", 100 * *fit);
    if (row.took_turns) error += " *";
  }
  return line_of(row.strategy, seconds_text(row.seconds), seconds_text(row.model_seconds),
                 row.steps, row.messages, rough_size(static_cast<double>(row.busiest_bytes)),
                 measured, error);
}

/// "fastest: tree, 1.2 us"
std::string fastest_of(const Table& table) {
  const auto time = [](const Simulated& row) {
    return row.why_not.empty() ? row.seconds : std::numeric_limits<double>::infinity();
  };
  const auto best = std::min_element(
      table.begin(), table.end(), [&](const auto& a, const auto& b) { return time(a) < time(b); });
  if (!best->why_not.empty()) return {};
  return fmt::format("fastest: {}, {}\n", best->strategy, seconds_text(best->seconds));
}

std::string to_text(const Table& table, const Costs& costs) {
  const bool measured = std::any_of(table.begin(), table.end(), has_measured);
  std::string text = heading_of(table.front(), costs);
  text += line_of("strategy", "played", "formula", "steps", "messages", "busiest sends",
                  measured ? "measured" : "", measured ? "off by" : "");
  for (const Simulated& row : table) text += line_of(row, costs);
  return text + fastest_of(table);
}

}  // namespace

std::string to_text(const std::vector<Simulated>& rows, const Costs& costs) {
  std::string text;
  for (auto begin = rows.begin(); begin != rows.end();) {
    const auto end = std::find_if(begin, rows.end(), [&](const Simulated& row) {
      return row.layout.ranks() != begin->layout.ranks() ||
             row.layout.machines != begin->layout.machines || row.bytes != begin->bytes;
    });
    text += (text.empty() ? "" : "\n") + to_text(Table(begin, end), costs);
    begin = end;
  }
  if (std::any_of(rows.begin(), rows.end(), [](const auto& row) { return row.took_turns; })) {
    text += "* more ranks than processors: they took turns, which no model of a network knows of\n";
  }
  return text;
}

}  // namespace ringlet::bench
