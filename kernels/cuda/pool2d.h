// CUDA's implementations of kernels/pool2d.h. The contract has been checked.
#pragma once

#include "kernels/cuda/cuda_device.h"
#include "kernels/pool2d.h"

namespace ringlet::impl {

void avg_pool2d_forward(CudaStream& stream, const Pool2dSpec& spec, const ConstView& x,
                        const View& y);
void avg_pool2d_backward(CudaStream& stream, const Pool2dSpec& spec, const ConstView& dy,
                         float beta, const View& dx);
void max_pool2d_forward(CudaStream& stream, const Pool2dSpec& spec, const ConstView& x,
                        const View& y, const View& winner);
void max_pool2d_backward(CudaStream& stream, const Pool2dSpec& spec, const ConstView& dy,
                         const ConstView& winner, float beta, const View& dx);

}  // namespace ringlet::impl
