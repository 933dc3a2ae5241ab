#include "base/hash.h"

#include <array>
#include <bit>
#include <cstddef>
#include <cstring>

#include "base/sampling.h"

namespace ringlet {
namespace {

std::uint64_t load64(const std::uint8_t* address) {
  std::uint64_t word = 0;
  std::memcpy(&word, address, sizeof word);
  return word;
}

}  // namespace

std::uint64_t hash_bytes(std::span<const std::uint8_t> bytes, std::uint64_t seed) {
  constexpr std::uint64_t kMultiplier = 0x9FB21C651E98DF25ULL;
  std::array<std::uint64_t, 4> lanes{seed, ~seed, mix64(seed), bytes.size()};
  std::size_t i = 0;
  for (; i + 32 <= bytes.size(); i += 32) {
    for (std::size_t k = 0; k < 4; ++k) {
      lanes[k] = std::rotl((lanes[k] ^ load64(bytes.data() + i + 8 * k)) * kMultiplier, 29);
    }
  }
  std::array<std::uint8_t, 32> rest{};
  if (i < bytes.size()) std::memcpy(rest.data(), bytes.data() + i, bytes.size() - i);
  std::uint64_t hash = bytes.size();
  for (std::size_t k = 0; k < 4; ++k)
    hash = mix64(hash ^ lanes[k]) ^ mix64(load64(rest.data() + 8 * k) + k);
  return mix64(hash);
}

}  // namespace ringlet
