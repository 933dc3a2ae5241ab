// Differentiable ReLU (kernels/relu.h).
#pragma once

#include "nn/variable.h"

namespace ringlet::nn {

Variable relu(const Variable& x);

}  // namespace ringlet::nn
