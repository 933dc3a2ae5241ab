#include "comm/processes/hash.h"

#include <array>
#include <bit>
#include <cstddef>
#include <cstring>

namespace ringlet::comm {

namespace {

constexpr std::uint64_t kOdd = 0x9E3779B97F4A7C15;  // 2^64 / golden ratio

/// A bijection of `state` for each `word`, and of `word` for each `state`.
std::uint64_t mix(std::uint64_t state, std::uint64_t word) {
  return std::rotl((state ^ word) * kOdd, 29);
}

std::uint64_t load(const std::byte* from, std::size_t bytes) {
  std::uint64_t word = 0;
  std::memcpy(&word, from, bytes);
  return word;
}

}  // namespace

std::uint64_t hash_bytes(const void* data, std::int64_t bytes) {
  constexpr std::size_t kWord = sizeof(std::uint64_t);
  constexpr std::size_t kWays = 4;  // independent chains hide the multiplication's latency
  const auto* next = static_cast<const std::byte*>(data);
  auto left = static_cast<std::size_t>(bytes);
  std::array<std::uint64_t, kWays> ways{1, 2, 3, 4};
  for (; left >= kWays * kWord; left -= kWays * kWord, next += kWays * kWord) {
    for (std::size_t way = 0; way < kWays; ++way) {
      ways[way] = mix(ways[way], load(next + way * kWord, kWord));
    }
  }
  std::uint64_t hash = static_cast<std::uint64_t>(bytes);
  for (const std::uint64_t way : ways) hash = mix(hash, way);
  for (; left >= kWord; left -= kWord, next += kWord) hash = mix(hash, load(next, kWord));
  if (left > 0) hash = mix(hash, load(next, left));
  return hash;
}

}  // namespace ringlet::comm
