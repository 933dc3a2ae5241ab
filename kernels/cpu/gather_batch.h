// The CPU's implementation of kernels/gather_batch.h. The contract has been checked, but for the
// position, which is checked here.
#pragma once

#include "kernels/cpu/cpu_device.h"
#include "kernels/gather_batch.h"

namespace ringlet::impl {

void gather_batch(CpuStream& stream, const GatherSpec& spec, const ConstView& images,
                  const ConstView& labels, const ConstView& position, const View& y,
                  const View& batch_labels);

}  // namespace ringlet::impl
