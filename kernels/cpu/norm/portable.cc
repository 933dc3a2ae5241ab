#include "kernels/cpu/norm/loops.h"

namespace ringlet::impl {

namespace {

struct PortableNorm {
  typedef float Vector __attribute__((vector_size(16)));
  typedef float Unaligned __attribute__((vector_size(16), aligned(4), may_alias));
};

}  // namespace

NormLoops norm_loops_of(PortableSet) { return norm_loops_with<PortableNorm>(); }

}  // namespace ringlet::impl
