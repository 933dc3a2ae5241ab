// The sizes that a benchmark goes through, and how they are written: 4096 is 4K.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace ringlet::bench {

/// "4096", "4K", "64M", "1G": powers of 1024, with or without B or iB behind. Nothing for anything
/// else, and for what 62 bits cannot count.
std::optional<std::int64_t> parse_size(std::string_view text);

/// 4096 as "4K", 1000 as "1000".
std::string size_text(std::int64_t bytes);

/// More of one range are refused.
inline constexpr std::int64_t kMostSizes = 10'000;

/// Sizes from `begin` on, each one the size before times `factor` or, where `step` is not 0, plus
/// `step`, up to `end`. Rounded down to whole elements, equally many for each of `parts`, without
/// repetition. Throws ContractError for an empty range, a factor below 2, a `begin` that has not an
/// element for each part, and more than kMostSizes.
struct SizeRange {
  std::int64_t begin = 4096;
  std::int64_t end = 64 << 20;
  std::int64_t factor = 2;
  std::int64_t step = 0;
};
std::vector<std::int64_t> sizes_of(const SizeRange& range, std::int64_t element_bytes,
                                   int parts = 1);

}  // namespace ringlet::bench
