// CUDA's implementations of kernels/classify.h. The contract has been checked.
#pragma once

#include "kernels/classify.h"
#include "kernels/cuda/cuda_device.h"

namespace ringlet::impl {

void argmax_count(CudaStream& stream, const ConstView& logits, const ConstView& labels,
                  const View& count);
void count_nonfinite(CudaStream& stream, const ConstView& x, const View& count);

}  // namespace ringlet::impl
