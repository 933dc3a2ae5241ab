// Maps a stream's instruction set to its KernelTable. The one place that knows what was built.
#pragma once

#include "kernels/cpu/lanes/kernel_table.h"
#include "kernels/device.h"

namespace ringlet::lanes {

const KernelTable& kernels_for(InstructionSet isa);

}  // namespace ringlet::lanes
