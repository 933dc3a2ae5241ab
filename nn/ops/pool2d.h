// Differentiable pooling (kernels/pool2d.h).
#pragma once

#include "kernels/pool2d.h"
#include "nn/variable.h"

namespace ringlet::nn {

/// x [N, C, H, W] -> [N, C, OH, OW].
Variable avg_pool2d(const Variable& x, const Pool2dSpec& spec);
Variable max_pool2d(const Variable& x, const Pool2dSpec& spec);

}  // namespace ringlet::nn
