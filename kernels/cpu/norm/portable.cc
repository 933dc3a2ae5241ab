#include "kernels/cpu/norm/loops.h"

namespace ringlet::impl {

namespace {

struct PortableNorm {
  typedef float Vector __attribute__((vector_size(16)));
  typedef float Unaligned __attribute__((vector_size(16), aligned(4), may_alias));
  typedef std::uint32_t Integers __attribute__((vector_size(16)));
  typedef std::uint16_t Narrow __attribute__((vector_size(8)));
  typedef std::uint16_t UnalignedNarrow __attribute__((vector_size(8), aligned(2), may_alias));
};

}  // namespace

NormTable norm_table_of(PortableSet) { return norm_table_with<PortableNorm>(); }

}  // namespace ringlet::impl
