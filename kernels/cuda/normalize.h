// CUDA's implementations of kernels/normalize.h. The contract has been checked.
#pragma once

#include "kernels/cuda/cuda_device.h"
#include "kernels/normalize.h"

namespace ringlet::impl {

void normalize_forward(CudaStream& stream, const Normalization& normalization, const ConstView& x,
                       const View& y);
void relayout(CudaStream& stream, const ConstView& x, const View& y);

}  // namespace ringlet::impl
