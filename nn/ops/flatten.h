// A sample's features as one row, [N, C, H, W] -> [N, C * H * W], in C, H, W order whatever the
// layout. Where the memory has that order already nothing is copied: the same node is seen with
// another shape. In nhwc, of more than one channel and one pixel, it is copied there and back.
#pragma once

#include "nn/variable.h"

namespace ringlet::nn {

Variable flatten(const Variable& x);

}  // namespace ringlet::nn
