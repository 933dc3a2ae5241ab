// Cast: the same numbers as another kind of float. What gradients go through before and after they
// travel as sixteen bits (train/sync/gradient_sync.h).
#pragma once

#include "kernels/stream.h"
#include "kernels/tensor.h"

namespace ringlet {

/// y = x. One of them is f32, the other f16 or bf16, of the same shape and layout. Their memory
/// must not overlap. Narrowing rounds to nearest, ties to even; a number beyond y's largest becomes
/// infinite, a NaN stays one (narrow_floats.h). Widening is exact.
void cast(Stream& stream, ConstView x, View y);

}  // namespace ringlet
