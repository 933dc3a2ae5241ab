#include "kernels/cpu/norm/loops.h"

namespace ringlet::impl {

namespace {

struct Avx512Norm {
  typedef float Vector __attribute__((vector_size(64)));
  typedef float Unaligned __attribute__((vector_size(64), aligned(4), may_alias));
};

}  // namespace

NormLoops norm_loops_of(Avx512Set) { return norm_loops_with<Avx512Norm>(); }

}  // namespace ringlet::impl
