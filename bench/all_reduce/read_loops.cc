// The loop of read_all.h, compiled once for each instruction set (kernels/cpu/simd).
#include <cstddef>
#include <cstring>

#include "bench/all_reduce/read_all.h"
#include RINGLET_SIMD_HEADER

namespace ringlet::bench {

namespace {

using Word = std::uint64_t;
typedef Word Words __attribute__((vector_size(4 * RINGLET_SIMD::kWidth)));

template <class T>
T load(const std::byte* from) {
  T value;
  std::memcpy(&value, from, sizeof value);
  return value;
}

/// Four sums, each of a quarter of the memory: four streams at once keep more lines on their way
/// than one does, and between caches and from memory that is what counts.
std::uint64_t read(const void* data, std::int64_t bytes) {
  constexpr std::int64_t kVector = sizeof(Words), kWord = sizeof(Word);
  const std::int64_t quarter = bytes / (4 * kVector) * kVector;
  const auto* memory = static_cast<const std::byte*>(data);
  Words sums[4] = {};
  for (std::int64_t at = 0; at < quarter; at += kVector) {
    for (int k = 0; k < 4; ++k) sums[k] += load<Words>(memory + at + k * quarter);
  }
  const Words all = (sums[0] + sums[1]) + (sums[2] + sums[3]);
  Word sum = 0;
  for (std::int64_t lane = 0; lane < kVector / kWord; ++lane) sum += all[lane];
  std::int64_t at = 4 * quarter;
  for (; at + kWord <= bytes; at += kWord) sum += load<Word>(memory + at);
  for (; at < bytes; ++at) sum += static_cast<Word>(memory[at]);
  return sum;
}

}  // namespace

ReadLoop read_loop_of(RINGLET_SET set) { return {name_of(set), read}; }

}  // namespace ringlet::bench
