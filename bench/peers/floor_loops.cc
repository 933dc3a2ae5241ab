// Compiled once for each instruction set (kernels/cpu/simd).
#include "bench/peers/floor_loops.h"

#include <cstddef>

#include RINGLET_SIMD_HEADER

namespace ringlet::bench::peers {

namespace {

using S = RINGLET_SIMD;
constexpr std::size_t kLanes = S::kWidth;
constexpr std::size_t kBlock = 256 / sizeof(float);  // floats of a quarter in turn

void sum_into_both(float* a, float* b, std::size_t count) {
  std::size_t i = 0;
  for (; i + kLanes <= count; i += kLanes) {
    const S::Vector sum = simd::load<S>(a + i) + simd::load<S>(b + i);
    simd::store<S>(a + i, sum);
    simd::store<S>(b + i, sum);
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

void sum_into_all(float* const* buffers, std::size_t buffer_count, std::size_t count) {
  std::size_t i = 0;
  for (; i + kLanes <= count; i += kLanes) {
    S::Vector sum = simd::load<S>(buffers[0] + i);
    for (std::size_t k = 1; k < buffer_count; ++k) sum = sum + simd::load<S>(buffers[k] + i);
    for (std::size_t k = 0; k < buffer_count; ++k) simd::store<S>(buffers[k] + i, sum);
  }
  for (; i < count; ++i) {
    float sum = buffers[0][i];
    for (std::size_t k = 1; k < buffer_count; ++k) sum += buffers[k][i];
    for (std::size_t k = 0; k < buffer_count; ++k) buffers[k][i] = sum;
  }
}

void add(float* to, const float* from, std::size_t count) {
  std::size_t i = 0;
  for (; i + kLanes <= count; i += kLanes) {
    simd::store<S>(to + i, simd::load<S>(to + i) + simd::load<S>(from + i));
  }
  for (; i < count; ++i) to[i] += from[i];
}

}  // namespace

FloorLoops floor_loops_of(RINGLET_SET) {
  return {sum_into_both, sum_into_both_by_quarters, sum_into_all, add};
}

}  // namespace ringlet::bench::peers
