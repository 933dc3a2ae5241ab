// CUDA's implementations of kernels/linear.h, on cuBLASLt. The contract has been checked.
#pragma once

#include "kernels/cuda/cuda_device.h"
#include "kernels/linear.h"

namespace ringlet::impl {

void linear_forward(CudaStream& stream, const ConstView& x, const ConstView& w,
                    const ConstView& bias, Activation activation, const View& y);
void linear_backward_data(CudaStream& stream, const ConstView& w, const ConstView& dy, float beta,
                          const View& dx);
void linear_backward_weight(CudaStream& stream, const ConstView& x, const ConstView& dy, float beta,
                            const View& dw);

}  // namespace ringlet::impl
