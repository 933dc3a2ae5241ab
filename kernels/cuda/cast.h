// CUDA's implementation of kernels/cast.h. The contract has been checked.
#pragma once

#include "kernels/cast.h"
#include "kernels/cuda/cuda_device.h"

namespace ringlet::impl {

void cast(CudaStream& stream, const ConstView& x, const View& y);

}  // namespace ringlet::impl
