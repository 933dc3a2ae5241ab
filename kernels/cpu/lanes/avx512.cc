#include "kernels/cpu/lanes/make_table.h"
#include "kernels/cpu/lanes/simd_avx512.h"

namespace ringlet::lanes {

const KernelTable& avx512_kernels() {
  static constexpr KernelTable kTable = make_table<Avx512>();
  return kTable;
}

}  // namespace ringlet::lanes
