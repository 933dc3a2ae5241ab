// reduce_arrays() on the CPU, which alone has it.
#pragma once

#include "kernels/reduce.h"

namespace ringlet {

class CpuStream;

namespace impl {

void reduce_arrays(CpuStream& stream, ReduceOp op, const HostArrays& arrays,
                   const ReduceOptions& options);

}  // namespace impl

}  // namespace ringlet
