// The CPU's implementations of kernels/linear.h. The contract has been checked.
#pragma once

#include "kernels/cpu/cpu_device.h"
#include "kernels/linear.h"

namespace ringlet::impl {

void linear_forward(CpuStream& stream, const ConstView& x, const ConstView& w,
                    const ConstView& bias, Activation activation, const View& y);
void linear_backward_data(CpuStream& stream, const ConstView& w, const ConstView& dy, float beta,
                          const View& dx);
void linear_backward_weight(CpuStream& stream, const ConstView& x, const ConstView& dy, float beta,
                            const View& dw);

}  // namespace ringlet::impl
