// Differentiable convolution + ReLU + 2x2 average pooling as one. In the layout lanes nothing
// between them reaches memory (kernels/conv2d_relu_avg_pool2d.h). In nchw and nhwc the ReLU's
// result does, and is overwritten with its gradient: pooling, ReLU and bias go backward in one pass
// (kernels/bias.h).
#pragma once

#include "kernels/conv2d.h"
#include "kernels/pool2d.h"
#include "nn/variable.h"

namespace ringlet::nn {

/// Whether the three operations may run as one here: the device has the kernels, and the pooling is
/// 2x2 with stride 2, without padding.
bool fuses_conv2d_relu_avg_pool2d(const Variable& x, const Conv2dSpec& spec,
                                  const Pool2dSpec& pool);

/// x [N, C, H, W], weight [O, C/groups, KH, KW], bias [O] or absent -> [N, O, OH/2, OW/2].
Variable conv2d_relu_avg_pool2d(const Variable& x, const Variable& weight, const Variable& bias,
                                const Conv2dSpec& spec);

/// The same as rows (flatten.h), for x in nhwc: pooling writes, and reads, what is flattened in the
/// order of the rows.
Variable flat_conv2d_relu_avg_pool2d(const Variable& x, const Variable& weight,
                                     const Variable& bias, const Conv2dSpec& spec);

}  // namespace ringlet::nn
