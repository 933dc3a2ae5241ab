// CUDA's implementations of kernels/bias.h. The contract has been checked.
#pragma once

#include "kernels/bias.h"
#include "kernels/cuda/cuda_device.h"

namespace ringlet::impl {

void bias_forward(CudaStream& stream, const ConstView& x, const ConstView& b, const View& y);
void bias_backward(CudaStream& stream, const ConstView& dy, float beta, const View& db);

}  // namespace ringlet::impl
