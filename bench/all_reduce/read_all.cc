#include "bench/all_reduce/read_all.h"

#include <array>
#include <cstddef>
#include <cstring>

#include "base/instruction_set.h"

namespace ringlet::bench {

std::uint64_t read_portably(const void* data, std::int64_t bytes) {
  constexpr std::size_t kLanes = 16, kWord = sizeof(std::uint64_t);
  constexpr std::int64_t kBlock = kLanes * kWord;
  const auto* memory = static_cast<const std::byte*>(data);
  std::array<std::uint64_t, kLanes> sums{};  // independent, which the compiler makes vectors of
  std::int64_t at = 0;
  for (; at + kBlock <= bytes; at += kBlock) {
    for (std::size_t lane = 0; lane < kLanes; ++lane) {
      std::uint64_t word = 0;
      std::memcpy(&word, memory + at + lane * kWord, kWord);
      sums[lane] += word;
    }
  }
  std::uint64_t sum = 0;
  for (const std::uint64_t lane : sums) sum += lane;
  for (; at + static_cast<std::int64_t>(kWord) <= bytes; at += kWord) {
    std::uint64_t word = 0;
    std::memcpy(&word, memory + at, kWord);
    sum += word;
  }
  for (; at < bytes; ++at) sum += static_cast<std::uint64_t>(memory[at]);
  return sum;
}

std::vector<ReadLoop> read_loops() {
  std::vector<ReadLoop> loops;
  if constexpr (kX86) loops = wide_read_loops();
  loops.push_back({"portable", read_portably});
  return loops;
}

std::uint64_t read_all(const void* data, std::int64_t bytes) {
  static const auto read = read_loops().front().read;
  return read(data, bytes);
}

}  // namespace ringlet::bench
