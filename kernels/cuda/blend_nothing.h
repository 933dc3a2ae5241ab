// The gradient of an empty batch: a sum of no terms.
#pragma once

#include "kernels/implementations.h"

namespace ringlet::impl {

/// y = beta * y; with beta = 0, y is not read.
inline void blend_nothing(CudaStream& stream, float beta, const View& y) {
  if (beta == 0) {
    fill(stream, 0, y);
  } else if (beta != 1) {
    scale(stream, beta, y, 0, y);
  }
}

}  // namespace ringlet::impl
