// CUDA's implementation of kernels/l2_norm.h. The contract has been checked.
#pragma once

#include "kernels/cuda/cuda_device.h"
#include "kernels/l2_norm.h"

namespace ringlet::impl {

void l2_norm(CudaStream& stream, const ConstView& x, const View& norm);

}  // namespace ringlet::impl
