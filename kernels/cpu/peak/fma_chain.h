// The loop that measures the peak, for each instruction set (compiled like kernels/cpu/lanes).
#pragma once

#include <cstdint>

namespace ringlet::peak {

/// What a call of a chain did.
struct ChainResult {
  double flops;
  float sum;  ///< to be looked at, so that nothing is left out
};

ChainResult fma_chain_portable(std::int64_t rounds);
ChainResult fma_chain_avx2(std::int64_t rounds);
ChainResult fma_chain_avx512(std::int64_t rounds);

}  // namespace ringlet::peak
