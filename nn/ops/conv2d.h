// Differentiable convolution, with bias and ReLU in the same pass where asked for
// (kernels/conv2d.h).
#pragma once

#include "kernels/conv2d.h"
#include "nn/variable.h"

namespace ringlet::nn {

/// What a recorded "conv2d" says of itself (nn/recorded_graph.h).
struct RecordedConv2d {
  Conv2dSpec spec;
  Activation activation = Activation::none;
};

/// x [N, C, H, W], weight [O, C/groups, KH, KW], bias [O] or absent -> [N, O, OH, OW].
Variable conv2d(const Variable& x, const Variable& weight, const Variable& bias,
                const Conv2dSpec& spec, Activation activation = Activation::none);

}  // namespace ringlet::nn
