#include "kernels/cpu/reduction/table.h"

namespace ringlet::impl {

ReduceFunction reduction_for(InstructionSet isa, ReduceOp op, DType dtype) {
  if (isa == InstructionSet::avx512) return avx512_reduction(op, dtype);
  if (isa == InstructionSet::avx2) return avx2_reduction(op, dtype);
  return portable_reduction(op, dtype);
}

CastFunction cast_for(InstructionSet isa, DType from, DType to) {
  if (isa == InstructionSet::avx512) return avx512_cast(from, to);
  if (isa == InstructionSet::avx2) return avx2_cast(from, to);
  return portable_cast(from, to);
}

}  // namespace ringlet::impl
