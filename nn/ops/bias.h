// Backward of what follows a product: a bias, and an activation behind it (kernels/bias.h).
#pragma once

#include "kernels/activation.h"
#include "nn/tape.h"

namespace ringlet::nn {

/// For y = activation(x + bias) of an operation that runs backward: the gradient of y becomes that
/// of x, in place, and the bias gets its own where it is wanted. It may be absent.
void bias_backward(Backward& backward, const Variable& y, const Variable& bias,
                   Activation activation);

}  // namespace ringlet::nn
