#include "bench/all_reduce/sizes.h"

#include <fmt/format.h>

#include <array>
#include <charconv>
#include <utility>

#include "base/error.h"

namespace ringlet::bench {

namespace {

constexpr std::array<std::pair<char, int>, 3> kUnits{{{'G', 30}, {'M', 20}, {'K', 10}}};

/// The power of two that the unit behind the digits stands for.
std::optional<int> shift_of(std::string_view unit) {
  if (unit.empty() || unit == "B") return 0;
  for (const auto& [letter, shift] : kUnits) {
    const char lower = static_cast<char>(letter - 'A' + 'a');
    if (unit[0] != letter && unit[0] != lower) continue;
    const std::string_view rest = unit.substr(1);
    if (rest.empty() || rest == "B" || rest == "iB") return shift;
  }
  return {};
}

}  // namespace

std::optional<std::int64_t> parse_size(std::string_view text) {
  std::int64_t number = 0;
  const auto [stopped, error] = std::from_chars(text.data(), text.data() + text.size(), number);
  if (error != std::errc() || number < 0) return {};
  const auto digits = static_cast<std::size_t>(stopped - text.data());
  const std::optional<int> shift = shift_of(text.substr(digits));
  constexpr int kBits = 62;
  if (!shift || number > (std::int64_t{1} << (kBits - *shift))) return {};
  return number << *shift;
}

std::string size_text(std::int64_t bytes) {
  for (const auto& [letter, shift] : kUnits) {
    const std::int64_t unit = std::int64_t{1} << shift;
    if (bytes >= unit && bytes % unit == 0) return fmt::format("{}{}", bytes / unit, letter);
  }
  return fmt::format("{}", bytes);
}

std::vector<std::int64_t> sizes_of(const SizeRange& range, std::int64_t element_bytes, int parts) {
  if (range.begin > range.end) {
    throw ContractError(fmt::format("--begin {} is larger than --end {}", size_text(range.begin),
                                    size_text(range.end)));
  }
  const std::int64_t least = element_bytes * parts;
  if (range.begin < least) {
    throw ContractError(fmt::format(
        "--begin {} holds no element of {} bytes{}", size_text(range.begin), element_bytes,
        parts == 1 ? "" : fmt::format(" for each of {} ranks; give {} or more", parts, least)));
  }
  require(range.step > 0 || range.factor >= 2, "sizes_of", "sizes have to grow");
  if (range.step > 0 && (range.end - range.begin) / range.step >= kMostSizes) {
    throw ContractError(
        fmt::format("--step {} makes more than {} sizes up to --end {}; give a "
                    "larger one, or --factor",
                    size_text(range.step), kMostSizes, size_text(range.end)));
  }
  std::vector<std::int64_t> sizes;
  for (std::int64_t size = range.begin;;) {
    const std::int64_t whole = size / least * least;
    if (sizes.empty() || whole != sizes.back()) sizes.push_back(whole);
    const bool is_last = range.step > 0 ? size > range.end - range.step  // no sum overflows
                                        : size > range.end / range.factor;
    if (is_last) return sizes;
    size = range.step > 0 ? size + range.step : size * range.factor;
  }
}

}  // namespace ringlet::bench
