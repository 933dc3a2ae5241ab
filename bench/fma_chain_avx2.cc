#include "bench/fma_chain_loop.h"
#include "kernels/cpu/lanes/simd_avx2.h"

namespace ringlet::bench {

ChainResult fma_chain_avx2(std::int64_t rounds) { return fma_chain<lanes::Avx2, 12>(rounds); }

}  // namespace ringlet::bench
