// For processors other than x86-64.
#include "kernels/cpu/lanes/kernels_for.h"

namespace ringlet::lanes {

const KernelTable& kernels_for(InstructionSet) { return portable_kernels(); }

}  // namespace ringlet::lanes
