// y = max(0, x)        dx = beta * dx + dy * [y > 0]
//
// A NaN passes through forward, so that a broken number is seen where it arises. All views are
// activations (kernels/tensor.h) of one shape and layout (any); y may be x's memory and, with
// beta = 0, dx may be dy's.
#pragma once

#include "kernels/stream.h"
#include "kernels/tensor.h"

namespace ringlet {

void relu_forward(Stream& stream, ConstView x, View y);
void relu_backward(Stream& stream, ConstView y, ConstView dy, float beta, View dx);

}  // namespace ringlet
