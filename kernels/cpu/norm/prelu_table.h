// The loops of PReLU over numbers of one channel that lie side by side, each compiled for its
// instruction set. Plain data, as table.h says.
#pragma once

#include <cstdint>

#include "base/instruction_set.h"

namespace ringlet::impl {

struct PReluLoops {
  /// y may be x.
  void (*forward)(const float* x, std::int64_t n, float slope, float* y);
  /// The sum of dy * min(x, 0); writes dx where it is not null.
  double (*backward)(const float* x, const float* dy, std::int64_t n, float slope, float beta,
                     float* dx);
};

PReluLoops prelu_loops_of(PortableSet);
PReluLoops prelu_loops_of(NeonSet);
PReluLoops prelu_loops_of(Avx2Set);
PReluLoops prelu_loops_of(Avx512Set);

}  // namespace ringlet::impl
