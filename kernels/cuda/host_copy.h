// CUDA's implementations of kernels/host_copy.h.
#pragma once

#include "kernels/cuda/cuda_device.h"
#include "kernels/tensor.h"

namespace ringlet::impl {

void copy_from_host(CudaStream& stream, const void* host, const View& y);
void copy_to_host(CudaStream& stream, const ConstView& x, void* host);

}  // namespace ringlet::impl
