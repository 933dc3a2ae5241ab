#include "kernels/cpu/lanes/simd_avx2.h"
#include "kernels/cpu/peak/fma_chain_loop.h"

namespace ringlet::peak {

ChainResult fma_chain_avx2(std::int64_t rounds) { return fma_chain<lanes::Avx2, 12>(rounds); }

}  // namespace ringlet::peak
