// Cast: the same numbers as another kind of float. What gradients go through before and after they
// travel as sixteen bits (train/sync/gradient_sync.h).
#pragma once

#include "kernels/stream.h"
#include "kernels/tensor.h"

namespace ringlet {

/// y = x; one of them f32, the other f16 or bf16, of the same shape and layout; the memory must not
/// overlap. To narrow rounds to nearest, ties to even; what is beyond y's largest number becomes
/// infinite, a NaN stays one (narrow_floats.h). To widen is exact.
void cast(Stream& stream, ConstView x, View y);

}  // namespace ringlet
