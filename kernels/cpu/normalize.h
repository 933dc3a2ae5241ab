// The CPU's implementations of kernels/normalize.h. The contract has been checked.
#pragma once

#include "kernels/cpu/cpu_device.h"
#include "kernels/normalize.h"

namespace ringlet::impl {

void normalize_forward(CpuStream& stream, const Normalization& normalization, const ConstView& x,
                       const View& y);
void relayout(CpuStream& stream, const ConstView& x, const View& y);

}  // namespace ringlet::impl
