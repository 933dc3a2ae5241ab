// On other processors there is only the portable set; nobody gets here.
#include "kernels/cpu/peak/fma_chain.h"

namespace ringlet::peak {

ChainResult fma_chain_avx2(std::int64_t rounds) { return fma_chain_portable(rounds); }
ChainResult fma_chain_avx512(std::int64_t rounds) { return fma_chain_portable(rounds); }

}  // namespace ringlet::peak
