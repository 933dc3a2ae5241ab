// The loops of the floor (floor_all_reduce.cc): vectors, loads and plain stores, nothing else.
#pragma once

#include <cstddef>

#include "base/instruction_set.h"

namespace ringlet::bench::peers {

struct FloorLoops {
  /// Both become their sum, a line after the other. The two do not overlap.
  void (*sum_into_both)(float* a, float* b, std::size_t count);
  /// The same with four quarters side by side, 256 bytes of each in turn: more lines of the cache
  /// are on their way at a time.
  void (*sum_into_both_by_quarters)(float* a, float* b, std::size_t count);
  /// All of so many buffers become their sum.
  void (*sum_into_all)(float* const* buffers, std::size_t buffer_count, std::size_t count);
  /// to += from
  void (*add)(float* to, const float* from, std::size_t count);
};

/// In the vectors of an instruction set; only what the processor has may be called.
FloorLoops floor_loops_of(PortableSet);
FloorLoops floor_loops_of(NeonSet);
FloorLoops floor_loops_of(Avx2Set);
FloorLoops floor_loops_of(Avx512Set);

}  // namespace ringlet::bench::peers
