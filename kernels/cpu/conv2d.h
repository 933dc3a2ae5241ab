// The CPU's implementations of kernels/conv2d.h. The contract has been checked.
#pragma once

#include "kernels/conv2d.h"
#include "kernels/cpu/cpu_device.h"

namespace ringlet::impl {

void conv2d_forward(CpuStream& stream, const Conv2dSpec& spec, const ConstView& x,
                    const ConstView& w, const ConstView& bias, Activation activation,
                    const View& y);
void conv2d_backward_data(CpuStream& stream, const Conv2dSpec& spec, const ConstView& w,
                          const ConstView& dy, float beta, const View& dx);
void conv2d_backward_filter(CpuStream& stream, const Conv2dSpec& spec, const ConstView& x,
                            const ConstView& dy, float beta, const View& dw);

}  // namespace ringlet::impl
