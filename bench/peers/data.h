// The input of each rank, and the check of the sum. Inputs are whole numbers that depend on rank,
// call and element, below 2^24 over the number of ranks, so a float holds every sum exactly, and
// nothing narrower does. A chunk that is missing, counted twice, left from the call before or at
// the wrong offset shows.
#pragma once

#include <bit>
#include <cstdint>
#include <span>

namespace ringlet::bench::peers {

/// Element `index` of what `rank` of so many brings to call number `call`.
constexpr float input(int rank, int ranks, int call, std::int64_t index) {
  const int bits = 24 - std::bit_width(static_cast<unsigned>(ranks - 1));
  const auto mixed = static_cast<std::uint32_t>(index) + 0x85ebca6bU * static_cast<unsigned>(rank) +
                     0xc2b2ae35U * static_cast<unsigned>(call);
  return static_cast<float>((mixed * 0x9e3779b1U) >>
                            (32 - bits));  // the product's upper bits mix all of its lower
}

/// Overwrites `data` with what `rank` brings to the call.
void write_input(std::span<float> data, int rank, int ranks, int call);

/// How many elements are not exactly the sum over `ranks` ranks, from its element `first` on.
std::int64_t count_wrong(std::span<const float> data, int ranks, int call, std::int64_t first = 0);
/// How many are not what `rank` brought, from its element `first` on.
std::int64_t count_wrong_of(std::span<const float> data, int rank, int ranks, int call,
                            std::int64_t first);

}  // namespace ringlet::bench::peers
