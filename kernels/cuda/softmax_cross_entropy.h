// CUDA's implementations of kernels/softmax_cross_entropy.h. The contract has been checked.
#pragma once

#include "kernels/cuda/cuda_device.h"
#include "kernels/softmax_cross_entropy.h"

namespace ringlet::impl {

void softmax_cross_entropy_forward(CudaStream& stream, const ConstView& logits,
                                   const ConstView& labels, const View& probabilities,
                                   const View& loss);
void softmax_cross_entropy_backward(CudaStream& stream, const ConstView& probabilities,
                                    const ConstView& labels, const ConstView& dloss, float beta,
                                    const View& dlogits);

}  // namespace ringlet::impl
