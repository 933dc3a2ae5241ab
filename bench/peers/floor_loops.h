// The loops of the floor (floor_all_reduce.cc): vectors, loads and plain stores, nothing else.
#pragma once

#include <cstddef>

namespace ringlet::bench::peers {

struct FloorLoops {
  /// Both become their sum, a line after the other. The two do not overlap.
  void (*sum_into_both)(float* a, float* b, std::size_t count);
  /// The same with four quarters side by side, 256 bytes of each in turn: more lines of the cache
  /// are on their way at a time.
  void (*sum_into_both_by_quarters)(float* a, float* b, std::size_t count);
  /// to += from
  void (*add)(float* to, const float* from, std::size_t count);
};

/// In the widest vectors that this processor has.
FloorLoops floor_loops();

/// By instruction set; only what the processor has may be called.
FloorLoops portable_floor_loops();
FloorLoops avx2_floor_loops();
FloorLoops avx512_floor_loops();

}  // namespace ringlet::bench::peers
