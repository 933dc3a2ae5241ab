#include "kernels/cpu/lanes/make_table.h"
#include "kernels/cpu/lanes/simd_portable.h"

namespace ringlet::lanes {

const KernelTable& portable_kernels() {
  static constexpr KernelTable kTable = make_table<Portable>();
  return kTable;
}

}  // namespace ringlet::lanes
