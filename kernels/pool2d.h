// Average and maximum over windows, with PyTorch's rules.
//
// Output extent: floor (or ceil, with ceil_mode) of (H + 2 ph - KH) / sh, plus 1. With ceil_mode a
// last window that would start in the padding beyond the image is left out. Padding is at most half
// of the window.
//
//   average   the sum divided by KH*KW with count_include_pad, else by the number of pixels of the
//             image in the window. What a ceil-mode window has beyond the padding is never counted.
//   maximum   padding never wins. Of equal pixels the first one wins. A NaN always wins, the last
//             of several, so that a broken number is seen where it arises.
//
// x, y, dy and dx are activations (kernels/tensor.h).
#pragma once

#include "kernels/stream.h"
#include "kernels/tensor.h"

namespace ringlet {

struct Pool2dSpec {
  Extent2 kernel{2, 2};
  Extent2 stride{2, 2};
  Extent2 padding{0, 0};
  bool ceil_mode = false;
  bool count_include_pad = true;
  bool operator==(const Pool2dSpec&) const = default;
};

/// [N, C, OH, OW] for x [N, C, H, W]. Throws ContractError when no window fits.
Shape pool2d_output_shape(const Pool2dSpec& spec, const Shape& x);

/// x [N, C, H, W], y [N, C, OH, OW]; any layout, the same for both. With x in nhwc and windows of
/// 2 x 2 side by side, y may be in nchw.
void avg_pool2d_forward(Stream& stream, const Pool2dSpec& spec, ConstView x, View y);
/// dx = beta * dx + (gradient).   dy [N, C, OH, OW], dx [N, C, H, W].
void avg_pool2d_backward(Stream& stream, const Pool2dSpec& spec, ConstView dy, float beta, View dx);

/// As above; `winner` (i32, shape and layout of y) gets the winning pixel's index h * W + w.
void max_pool2d_forward(Stream& stream, const Pool2dSpec& spec, ConstView x, View y, View winner);
/// dx = beta * dx + (gradient); windows that share a winner add up.
void max_pool2d_backward(Stream& stream, const Pool2dSpec& spec, ConstView dy, ConstView winner,
                         float beta, View dx);

}  // namespace ringlet
