// The CPU's implementations of kernels/pool2d.h. The contract has been checked.
#pragma once

#include "kernels/cpu/cpu_device.h"
#include "kernels/pool2d.h"

namespace ringlet::impl {

void avg_pool2d_forward(CpuStream& stream, const Pool2dSpec& spec, const ConstView& x,
                        const View& y);
void avg_pool2d_backward(CpuStream& stream, const Pool2dSpec& spec, const ConstView& dy, float beta,
                         const View& dx);
void max_pool2d_forward(CpuStream& stream, const Pool2dSpec& spec, const ConstView& x,
                        const View& y, const View& winner);
void max_pool2d_backward(CpuStream& stream, const Pool2dSpec& spec, const ConstView& dy,
                         const ConstView& winner, float beta, const View& dx);

}  // namespace ringlet::impl
