// CUDA's implementations of kernels/dropout.h. The contract has been checked.
#pragma once

#include "kernels/cuda/cuda_device.h"
#include "kernels/dropout.h"

namespace ringlet::impl {

void dropout_forward(CudaStream& stream, const DropoutSpec& spec, const ConstView& x,
                     const View& y);
void dropout_backward(CudaStream& stream, const DropoutSpec& spec, const ConstView& dy, float beta,
                      const View& dx);

}  // namespace ringlet::impl
