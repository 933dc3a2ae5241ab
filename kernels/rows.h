// Samples as rows of f32, whatever the type and layout of the activations: what ranks exchange.
#pragma once

#include "kernels/stream.h"
#include "kernels/tensor.h"

namespace ringlet {

/// rows = x. x: activations (kernels/tensor.h) [N, F]; rows f32 [N, F], row-major.
void rows_forward(Stream& stream, ConstView x, View rows);
/// dx = beta * dx + drows; lanes beyond N get 0.
void rows_backward(Stream& stream, ConstView drows, float beta, View dx);

}  // namespace ringlet
