// CUDA's implementations of kernels/async_copy.h. The contract has been checked.
#pragma once

#include "kernels/cuda/cuda_device.h"
#include "kernels/tensor.h"

namespace ringlet::impl {

void enqueue_copy_from_host(CudaStream& stream, const void* host, const View& y);
void enqueue_copy_to_host(CudaStream& stream, const ConstView& x, void* host);

}  // namespace ringlet::impl
