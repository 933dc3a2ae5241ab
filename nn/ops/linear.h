// Differentiable fully connected layer, with ReLU in the same pass where asked for
// (kernels/linear.h).
#pragma once

#include "kernels/activation.h"
#include "nn/variable.h"

namespace ringlet::nn {

/// x [N, I], weight [O, I], bias [O] or absent -> [N, O].
Variable linear(const Variable& x, const Variable& weight, const Variable& bias,
                Activation activation = Activation::none);

}  // namespace ringlet::nn
