// The loop that measures the peak, for each instruction set (compiled like kernels/cpu/lanes).
#pragma once

#include <cstdint>

namespace ringlet::peak {

/// The result of one call of a chain.
struct ChainResult {
  double flops;
  float sum;  ///< to be used, so that the compiler keeps the loop
};

ChainResult fma_chain_portable(std::int64_t rounds);
ChainResult fma_chain_avx2(std::int64_t rounds);
ChainResult fma_chain_avx512(std::int64_t rounds);

}  // namespace ringlet::peak
