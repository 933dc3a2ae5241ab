// CUDA's implementations of kernels/relu.h. The contract has been checked.
#pragma once

#include "kernels/cuda/cuda_device.h"
#include "kernels/relu.h"

namespace ringlet::impl {

void relu_forward(CudaStream& stream, const ConstView& x, const View& y);
void relu_backward(CudaStream& stream, const ConstView& y, const ConstView& dy, float beta,
                   const View& dx);

}  // namespace ringlet::impl
