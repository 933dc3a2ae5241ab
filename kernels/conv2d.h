// 2-d cross-correlation, as neural networks call "convolution".
//
//   y[n,o,i,j] = act( b[o] + sum over c, p, q of w[o,c,p,q] * x[n, g*Cg + c, r, s] )
//
//     with  r = i*sh - ph + p*dh    row of x         g = o / (O/groups)
//           s = j*sw - pw + q*dw    column of x      Cg = C/groups
//
// x is 0 outside the image. x, y, dy and dx are activations (kernels/tensor.h) in one layout,
// whichever. Weights, of their type, and the weights' gradients, f32, are row-major OIHW. On GPUs
// they may lie in nhwc as well, [O][KH][KW][C/groups], which saves a copy where activations do.
// Products of narrow factors are added up in f32, with the bias (f32), before y is rounded.
#pragma once

#include "base/instruction_set.h"
#include "kernels/activation.h"
#include "kernels/stream.h"
#include "kernels/tensor.h"

namespace ringlet {

struct Conv2dSpec {
  Extent2 stride{1, 1};
  Extent2 padding{0, 0};
  Extent2 dilation{1, 1};
  int groups = 1;
  bool operator==(const Conv2dSpec&) const = default;
};

/// [N, O, OH, OW] for x [N, C, H, W] and w [O, C/groups, KH, KW]:
/// OH = floor((H + 2 ph - dh (KH - 1) - 1) / sh) + 1. Throws ContractError when nothing fits.
Shape conv2d_output_shape(const Conv2dSpec& spec, const Shape& x, const Shape& w);

/// Whether processors with these instructions multiply bf16 by weights w [O, C, KH, KW], without
/// groups and dilation, in lanes. Else they go through f32, which is slower than f32 alone.
bool multiplies_bf16(Bf16Products products, const Shape& w);

/// x [N, C, H, W], w [O, C/groups, KH, KW], bias [O] or absent, y [N, O, OH, OW].
void conv2d_forward(Stream& stream, const Conv2dSpec& spec, ConstView x, ConstView w,
                    ConstView bias, Activation activation, View y);

/// dx = beta * dx + (gradient with respect to x).   w as above, dy [N, O, OH, OW], dx [N, C, H, W].
void conv2d_backward_data(Stream& stream, const Conv2dSpec& spec, ConstView w, ConstView dy,
                          float beta, View dx);

/// dw = beta * dw + (gradient with respect to w).   x and dy as above, dw [O, C/groups, KH, KW].
void conv2d_backward_filter(Stream& stream, const Conv2dSpec& spec, ConstView x, ConstView dy,
                            float beta, View dw);

}  // namespace ringlet
