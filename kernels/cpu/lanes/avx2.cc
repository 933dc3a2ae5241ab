#include "kernels/cpu/lanes/make_table.h"
#include "kernels/cpu/lanes/simd_avx2.h"

namespace ringlet::lanes {

const KernelTable& avx2_kernels() {
  static constexpr KernelTable kTable = make_table<Avx2>();
  return kTable;
}

}  // namespace ringlet::lanes
