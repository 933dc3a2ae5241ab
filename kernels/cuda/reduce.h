// CUDA's implementation of kernels/reduce.h. The contract has been checked.
#pragma once

#include "kernels/cuda/cuda_device.h"
#include "kernels/reduce.h"

namespace ringlet::impl {

/// The arrays may lie on other GPUs whose memory this one reads and writes in place.
void reduce(CudaStream& stream, ReduceOp op, std::span<const ConstView> xs,
            std::span<const View> ys, const ReduceOptions& options);

}  // namespace ringlet::impl
