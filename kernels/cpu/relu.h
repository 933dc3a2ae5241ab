// The CPU's implementations of kernels/relu.h. The contract has been checked.
#pragma once

#include "kernels/cpu/cpu_device.h"
#include "kernels/relu.h"

namespace ringlet::impl {

void relu_forward(CpuStream& stream, const ConstView& x, const View& y);
void relu_backward(CpuStream& stream, const ConstView& y, const ConstView& dy, float beta,
                   const View& dx);

}  // namespace ringlet::impl
