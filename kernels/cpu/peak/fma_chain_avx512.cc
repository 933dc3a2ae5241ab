#include "kernels/cpu/lanes/simd_avx512.h"
#include "kernels/cpu/peak/fma_chain_loop.h"

namespace ringlet::peak {

ChainResult fma_chain_avx512(std::int64_t rounds) { return fma_chain<lanes::Avx512, 24>(rounds); }

}  // namespace ringlet::peak
