// The CPU's implementations of kernels/classify.h. The contract has been checked.
#pragma once

#include "kernels/classify.h"
#include "kernels/cpu/cpu_device.h"

namespace ringlet::impl {

void argmax_count(CpuStream& stream, const ConstView& logits, const ConstView& labels,
                  const View& count);
void count_nonfinite(CpuStream& stream, const ConstView& x, const View& count);

}  // namespace ringlet::impl
