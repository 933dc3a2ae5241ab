// The CPU's implementation of kernels/cast.h. The contract has been checked.
#pragma once

#include "kernels/cast.h"
#include "kernels/cpu/cpu_device.h"

namespace ringlet::impl {

void cast(CpuStream& stream, const ConstView& x, const View& y);

}  // namespace ringlet::impl
