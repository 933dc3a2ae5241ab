// CUDA's implementation of kernels/gather_batch.h. The contract has been checked.
#pragma once

#include "kernels/cuda/cuda_device.h"
#include "kernels/gather_batch.h"

namespace ringlet::impl {

void gather_batch(CudaStream& stream, const GatherSpec& spec, const ConstView& images,
                  const ConstView& labels, const ConstView& position, const View& y,
                  const View& batch_labels);

}  // namespace ringlet::impl
