// The CPU's implementation of kernels/l2_norm.h. The contract has been checked.
#pragma once

#include "kernels/cpu/cpu_device.h"
#include "kernels/l2_norm.h"

namespace ringlet::impl {

void l2_norm(CpuStream& stream, const ConstView& x, const View& norm);

}  // namespace ringlet::impl
