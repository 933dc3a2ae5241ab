// Differentiable PReLU (kernels/prelu.h).
#pragma once

#include "nn/variable.h"

namespace ringlet::nn {

/// x > 0 ? x : slope x. x [N, C] or [N, C, H, W]; slope [C], or [1] for all channels.
Variable prelu(const Variable& x, const Variable& slope);

}  // namespace ringlet::nn
