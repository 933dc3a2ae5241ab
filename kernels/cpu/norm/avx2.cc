#include "kernels/cpu/norm/loops.h"

namespace ringlet::impl {

namespace {

struct Avx2Norm {
  typedef float Vector __attribute__((vector_size(32)));
  typedef float Unaligned __attribute__((vector_size(32), aligned(4), may_alias));
};

}  // namespace

NormLoops norm_loops_of(Avx2Set) { return norm_loops_with<Avx2Norm>(); }

}  // namespace ringlet::impl
