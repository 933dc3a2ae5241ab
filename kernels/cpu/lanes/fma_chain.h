// The loop that measures the peak: independent chains of a = a + a * x in as many registers as the
// set has to spare, enough to hide the latency of a multiply-add (four cycles) on two units.
#pragma once

#include <cstdint>

#include "kernels/cpu/lanes/arguments.h"
#include "kernels/cpu/lanes/tile.h"

namespace ringlet::lanes {

template <class S>
FmaChainResult fma_chain(std::int64_t rounds) {
  constexpr int kChains = S::kFmaChains;
  typename S::Vector chain[kChains];
  // A number that the compiler does not know, and that keeps every chain as it is.
  volatile float factor = 0.0F;
  const typename S::Vector x = broadcast<S>(factor);
  unroll<kChains>([&](auto c) __attribute__((always_inline)) {
    chain[c] = broadcast<S>(static_cast<float>(c) / kChains);
  });
  for (std::int64_t round = 0; round < rounds; ++round) {
    unroll<kChains>([&](auto c) __attribute__((always_inline)) {
      chain[c] = S::template multiply_add<0>(chain[c], chain[c], x);
    });
  }
  typename S::Vector sum{};
  unroll<kChains>([&](auto c) __attribute__((always_inline)) { sum += chain[c]; });
  return {2.0 * kChains * S::kWidth * static_cast<double>(rounds), S::sum(sum)};
}

}  // namespace ringlet::lanes
