#include "data/content_hash.h"

#include <algorithm>
#include <bit>
#include <cstring>

#include "data/sampler.h"

namespace ringlet::data {
namespace {

/// Pieces stay in the first-level cache between hashing and counting.
constexpr std::size_t kPieceBytes = std::size_t{1} << 14;

std::uint64_t load64(const std::uint8_t* address) {
  std::uint64_t word = 0;
  std::memcpy(&word, address, sizeof word);
  return word;
}

/// Four tables, so that equal neighbours do not wait for each other's counter.
void count(std::span<const std::uint8_t> bytes,
           std::array<std::array<std::uint32_t, 256>, 4>& tables) {
  std::size_t i = 0;
  for (; i + 4 <= bytes.size(); i += 4) {
    for (std::size_t k = 0; k < 4; ++k) ++tables[k][bytes[i + k]];
  }
  for (; i < bytes.size(); ++i) ++tables[0][bytes[i]];
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

std::uint64_t hash_and_count(std::span<const std::uint8_t> bytes, std::uint64_t seed,
                             Histogram& histogram) {
  constexpr std::size_t kFlushBytes = std::size_t{1} << 30;  // a 32-bit counter cannot overflow
  std::array<std::array<std::uint32_t, 256>, 4> tables{};
  const auto flush = [&] {
    for (auto& table : tables) {
      for (std::size_t v = 0; v < table.size(); ++v) histogram[v] += table[v];
      table.fill(0);
    }
  };
  std::size_t since_flush = 0;
  for (std::size_t begin = 0; begin < bytes.size(); begin += kPieceBytes) {
    const auto piece = bytes.subspan(begin, std::min(kPieceBytes, bytes.size() - begin));
    seed = hash_bytes(piece, seed);
    count(piece, tables);
    since_flush += piece.size();
    if (since_flush >= kFlushBytes) flush(), since_flush = 0;
  }
  flush();
  return mix64(seed ^ bytes.size());
}

}  // namespace ringlet::data
