// PReLU, a ReLU whose slope below zero is learnt, for each channel or for all (He et al., "Delving
// Deep into Rectifiers", ICCV 2015).
//
//   y = x > 0 ? x : a[c] x      dx = beta * dx + dy (x > 0 ? 1 : a[c])
//                               da[c] = beta * da[c] + sum over n, h, w of dy * min(x, 0)
//
// x, y, dy and dx [N, C] or [N, C, H, W] are activations (kernels/tensor.h), of one kind; a and da
// f32 [C], or [1] for all channels. A NaN passes through, and shows in da.
#pragma once

#include "kernels/stream.h"
#include "kernels/tensor.h"

namespace ringlet {

/// y may be x's memory.
void prelu_forward(Stream& stream, ConstView x, ConstView slope, View y);
/// Both gradients, in one pass over x and dy; either may be absent. With beta = 0, dx may be dy's
/// memory.
void prelu_backward(Stream& stream, ConstView x, ConstView slope, ConstView dy, float beta, View dx,
                    float beta_slope, View dslope);

}  // namespace ringlet
