// The CPU's implementation of kernels/reduce.h. The contract has been checked.
#pragma once

#include "kernels/cpu/cpu_device.h"
#include "kernels/reduce.h"

namespace ringlet::impl {

void reduce(CpuStream& stream, ReduceOp op, std::span<const ConstView> xs, std::span<const View> ys,
            const ReduceOptions& options);

}  // namespace ringlet::impl
