#include "kernels/cpu/norm/loops.h"

namespace ringlet::impl {

namespace {

struct Avx512Norm {
  typedef float Vector __attribute__((vector_size(64)));
  typedef float Unaligned __attribute__((vector_size(64), aligned(4), may_alias));
  typedef std::uint32_t Integers __attribute__((vector_size(64)));
  typedef std::uint16_t Narrow __attribute__((vector_size(32)));
  typedef std::uint16_t UnalignedNarrow __attribute__((vector_size(32), aligned(2), may_alias));
};

}  // namespace

NormTable norm_table_of(Avx512Set) { return norm_table_with<Avx512Norm>(); }

}  // namespace ringlet::impl
