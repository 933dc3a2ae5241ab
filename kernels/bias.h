// Adds one number per channel to every sample and pixel.   y[n,c,...] = x[n,c,...] + b[c]
#pragma once

#include "kernels/stream.h"
#include "kernels/tensor.h"

namespace ringlet {

/// x and y [N, C] or [N, C, H, W], the same layout (nchw or lanes), may be the same memory; b [C].
void bias_forward(Stream& stream, ConstView x, ConstView b, View y);
/// db[c] = beta * db[c] + sum over n, h, w of dy[n,c,h,w].   db [C].
void bias_backward(Stream& stream, ConstView dy, float beta, View db);

}  // namespace ringlet
