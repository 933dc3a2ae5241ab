#include "kernels/cpu/lanes/kernels_for.h"

namespace ringlet::lanes {

const KernelTable& kernels_for(InstructionSet isa) {
  if (isa == InstructionSet::avx512) return avx512_kernels();
  if (isa == InstructionSet::avx2) return avx2_kernels();
  return portable_kernels();
}

}  // namespace ringlet::lanes
