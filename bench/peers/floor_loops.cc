// Compiled once for each instruction set, with that set's options and its tag as RINGLET_SET.
#include "bench/peers/floor_loops.h"

#include <cstddef>
#include <cstring>

namespace ringlet::bench::peers {

namespace {

constexpr std::size_t kBytes = RINGLET_SET::value == InstructionSet::avx512 ? 64
                               : RINGLET_SET::value == InstructionSet::avx2 ? 32
                                                                            : 16;
using Vector __attribute__((vector_size(kBytes))) = float;
constexpr std::size_t kLanes = kBytes / sizeof(float);
constexpr std::size_t kBlock = 256 / sizeof(float);  // floats of a quarter in turn

Vector load(const float* from) {
  Vector vector;
  std::memcpy(&vector, from, kBytes);
  return vector;
}

void store(float* to, Vector vector) { std::memcpy(to, &vector, kBytes); }

void sum_into_both(float* a, float* b, std::size_t count) {
  std::size_t i = 0;
  for (; i + kLanes <= count; i += kLanes) {
    const Vector sum = load(a + i) + load(b + i);
    store(a + i, sum);
    store(b + i, sum);
  }
  for (; i < count; ++i) a[i] = b[i] = a[i] + b[i];
}

void sum_into_both_by_quarters(float* a, float* b, std::size_t count) {
  const std::size_t quarter = count / (4 * kBlock) * kBlock;
  for (std::size_t i = 0; i < quarter; i += kBlock) {
    for (std::size_t k = 0; k < 4; ++k) {
      sum_into_both(a + k * quarter + i, b + k * quarter + i, kBlock);
    }
  }
  sum_into_both(a + 4 * quarter, b + 4 * quarter, count - 4 * quarter);
}

void add(float* to, const float* from, std::size_t count) {
  std::size_t i = 0;
  for (; i + kLanes <= count; i += kLanes) store(to + i, load(to + i) + load(from + i));
  for (; i < count; ++i) to[i] += from[i];
}

}  // namespace

FloorLoops floor_loops_of(RINGLET_SET) { return {sum_into_both, sum_into_both_by_quarters, add}; }

}  // namespace ringlet::bench::peers
