#include "kernels/cpu/lanes/simd_portable.h"
#include "kernels/cpu/peak/fma_chain_loop.h"

namespace ringlet::peak {

ChainResult fma_chain_portable(std::int64_t rounds) {
  return fma_chain<lanes::Portable, 12>(rounds);
}

}  // namespace ringlet::peak
