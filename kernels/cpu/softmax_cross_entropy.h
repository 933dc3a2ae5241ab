// The CPU's implementations of kernels/softmax_cross_entropy.h. The contract has been checked, but
// for the labels' values, which are checked here.
#pragma once

#include "kernels/cpu/cpu_device.h"
#include "kernels/softmax_cross_entropy.h"

namespace ringlet::impl {

void softmax_cross_entropy_forward(CpuStream& stream, const ConstView& logits,
                                   const ConstView& labels, const View& probabilities,
                                   const View& loss);
void softmax_cross_entropy_backward(CpuStream& stream, const ConstView& probabilities,
                                    const ConstView& labels, const ConstView& dloss, float beta,
                                    const View& dlogits);

}  // namespace ringlet::impl
