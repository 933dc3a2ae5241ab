// CUDA's implementation of kernels/sgd.h. The contract has been checked.
#pragma once

#include "kernels/cuda/cuda_device.h"
#include "kernels/sgd.h"

namespace ringlet::impl {

void sgd_update(CudaStream& stream, const SgdSpec& spec, const ConstView& rates, const View& value,
                const ConstView& gradient, const View& velocity);

}  // namespace ringlet::impl
