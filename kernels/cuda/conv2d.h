// The CUDA's implementations of kernels/conv2d.h, on cuDNN. The contract has been checked.
#pragma once

#include "kernels/conv2d.h"
#include "kernels/cuda/cuda_device.h"

namespace ringlet::impl {

void conv2d_forward(CudaStream& stream, const Conv2dSpec& spec, const ConstView& x,
                    const ConstView& w, const ConstView& bias, Activation activation,
                    const View& y);
void conv2d_backward_data(CudaStream& stream, const Conv2dSpec& spec, const ConstView& w,
                          const ConstView& dy, float beta, const View& dx);
void conv2d_backward_filter(CudaStream& stream, const Conv2dSpec& spec, const ConstView& x,
                            const ConstView& dy, float beta, const View& dw);

}  // namespace ringlet::impl
