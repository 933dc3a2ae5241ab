// The loops of floor_loops.h as templates over a vector's bytes, which keep apart what
// floor_loops_*.cc compile with the options of their instruction sets.
#pragma once

#include <cstddef>
#include <cstring>

#include "bench/peers/floor_loops.h"

namespace ringlet::bench::peers {

template <std::size_t bytes>
class LoopsOf {
 public:
  static FloorLoops all() { return {sum_into_both, sum_into_both_by_quarters, add}; }

 private:
  using Vector __attribute__((vector_size(bytes))) = float;
  static constexpr std::size_t kLanes = bytes / sizeof(float);
  static constexpr std::size_t kBlock = 256 / sizeof(float);  // floats of a quarter in turn

  static Vector load(const float* from) {
    Vector vector;
    std::memcpy(&vector, from, bytes);
    return vector;
  }
  static void store(float* to, Vector vector) { std::memcpy(to, &vector, bytes); }

  static void sum_into_both(float* a, float* b, std::size_t count) {
    std::size_t i = 0;
    for (; i + kLanes <= count; i += kLanes) {
      const Vector sum = load(a + i) + load(b + i);
      store(a + i, sum);
      store(b + i, sum);
    }
    for (; i < count; ++i) a[i] = b[i] = a[i] + b[i];
  }

  static void sum_into_both_by_quarters(float* a, float* b, std::size_t count) {
    const std::size_t quarter = count / (4 * kBlock) * kBlock;
    for (std::size_t i = 0; i < quarter; i += kBlock) {
      for (std::size_t k = 0; k < 4; ++k) {
        sum_into_both(a + k * quarter + i, b + k * quarter + i, kBlock);
      }
    }
    sum_into_both(a + 4 * quarter, b + 4 * quarter, count - 4 * quarter);
  }

  static void add(float* to, const float* from, std::size_t count) {
    std::size_t i = 0;
    for (; i + kLanes <= count; i += kLanes) store(to + i, load(to + i) + load(from + i));
    for (; i < count; ++i) to[i] += from[i];
  }
};

}  // namespace ringlet::bench::peers
