#include "bench/simulation/quantities.h"

#include <fmt/format.h>

#include <array>
#include <charconv>
#include <cmath>
#include <span>
#include <utility>

#include "bench/all_reduce/sizes.h"

namespace ringlet::bench {

namespace {

struct Unit {
  std::string_view name;
  double value;
};
constexpr std::array<Unit, 4> kTimes{{{"ns", 1e-9}, {"us", 1e-6}, {"ms", 1e-3}, {"s", 1}}};
constexpr std::array<Unit, 4> kRates{{{"K", 1e3}, {"M", 1e6}, {"G", 1e9}, {"T", 1e12}}};
constexpr double kLeastSeconds = 1e-12, kMostSeconds = 1e3, kLeastRate = 1e3, kMostRate = 1e15;

/// A number in digits at the beginning of `text`, which is cut off.
template <class Number>
std::optional<Number> cut_number(std::string_view& text) {
  if (text.empty() || text.front() < '0' || text.front() > '9') return {};  // "inf", "-1"
  Number number{};
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), number);
  if (error != std::errc()) return {};
  text.remove_prefix(static_cast<std::size_t>(end - text.data()));
  return number;
}

/// The number times its unit.
std::optional<double> parse(std::string_view text, std::span<const Unit> units, double least,
                            double most) {
  const auto number = cut_number<double>(text);
  if (!number) return {};
  for (const Unit& unit : units) {
    if (text != unit.name) continue;
    const double value = *number * unit.value;
    if (value >= least && value <= most) return value;
  }
  return {};
}

/// In the largest unit of which it has one.
std::string in_unit(double value, std::span<const Unit> units, const char* between) {
  const Unit* unit = &units.front();
  for (const Unit& larger : units) {
    if (value >= 0.9995 * larger.value) unit = &larger;
  }
  const double number = value / unit->value;
  const std::string digits =
      number >= 1000 ? fmt::format("{:.0f}", number) : fmt::format("{:.4g}", number);
  return fmt::format("{}{}{}", digits, between, unit->name);
}

}  // namespace

std::optional<double> parse_seconds(std::string_view text) {
  return parse(text, kTimes, kLeastSeconds, kMostSeconds);
}

std::optional<double> parse_rate(std::string_view text) {
  return parse(text, kRates, kLeastRate, kMostRate);
}

std::string seconds_text(double seconds) {
  return seconds > 0 ? in_unit(seconds, kTimes, " ") : "0";
}

std::string rate_text(double bytes_per_second) { return in_unit(bytes_per_second, kRates, ""); }

std::string bytes_text(std::int64_t bytes) {
  const std::string text = size_text(bytes);
  return text.back() >= '0' && text.back() <= '9' ? text + " bytes" : text;
}

std::optional<Layout> parse_layout(std::string_view text) {
  const auto machines = cut_number<int>(text);
  if (!machines || !text.starts_with('x')) return {};
  text.remove_prefix(1);
  const auto each = cut_number<int>(text);
  if (!each || !text.empty() || *machines < 1 || *each < 1) return {};
  if (*machines > kMostRanks / *each || *machines * *each < 2) return {};
  return Layout{*machines, *each};
}

std::optional<SlowRank> parse_slow(std::string_view text) {
  constexpr double kMostFactor = 1e6;
  const auto rank = cut_number<int>(text);
  if (!rank || !text.starts_with(':')) return {};
  text.remove_prefix(1);
  const auto factor = cut_number<double>(text);
  if (!factor || text != "x" || !(*factor >= 1) || *factor > kMostFactor) return {};
  return SlowRank{*rank, *factor};
}

}  // namespace ringlet::bench
