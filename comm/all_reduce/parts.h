// Cuts an array into parts, one for each rank.
#pragma once

#include <algorithm>
#include <cstdint>

namespace ringlet::comm {

/// Where part `index`, 0 <= index <= parts, begins in `count` elements. The parts tile the
/// elements; their lengths differ by one at most, and are 0 where there are fewer elements than
/// parts. Long arrays are cut at multiples of kPartGrain, so that no cache line belongs to two
/// parts and vectors need no tails; then lengths differ by that much.
inline std::int64_t part_begin(std::int64_t count, int parts, int index) {
  constexpr std::int64_t kPartGrain = 32, kLong = 1024;  // elements; kLong of each part
  const std::int64_t grain = count >= kLong * parts ? kPartGrain : 1;
  const std::int64_t grains = count / grain;
  const std::int64_t begin =
      grain * (index * (grains / parts) + std::min<std::int64_t>(index, grains % parts));
  return index == parts ? count : begin;
}

/// Elements of the longest part.
inline std::int64_t longest_part_of(std::int64_t count, int parts) {
  std::int64_t longest = 0;
  for (int index = 0; index < parts; ++index) {
    longest =
        std::max(longest, part_begin(count, parts, index + 1) - part_begin(count, parts, index));
  }
  return longest;
}

}  // namespace ringlet::comm
