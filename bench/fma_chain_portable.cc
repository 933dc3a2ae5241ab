#include "bench/fma_chain_loop.h"
#include "kernels/cpu/lanes/simd_portable.h"

namespace ringlet::bench {

ChainResult fma_chain_portable(std::int64_t rounds) {
  return fma_chain<lanes::Portable, 12>(rounds);
}

}  // namespace ringlet::bench
