// Philox4x32-10: random numbers that are a pure function of (key, counter).
//
// Source: Salmon, Moraes, Dror, Shaw, "Parallel random numbers: as easy as 1, 2, 3", SC 2011. There
// is no state, so a mask or an initial weight is the same for any number of replicas, threads and
// devices. Plain functions, which device code can call.
#pragma once

#include <array>
#include <cmath>
#include <cstdint>

namespace ringlet {

using PhiloxBlock = std::array<std::uint32_t, 4>;

/// Four uniform 32-bit words for a 64-bit key and a 128-bit counter.
constexpr PhiloxBlock philox(std::uint64_t key, std::uint64_t counter_low,
                             std::uint64_t counter_high) {
  constexpr std::uint64_t kMultiplier0 = 0xD2511F53, kMultiplier1 = 0xCD9E8D57;
  constexpr std::uint32_t kWeyl0 = 0x9E3779B9, kWeyl1 = 0xBB67AE85;
  PhiloxBlock c{
      static_cast<std::uint32_t>(counter_low), static_cast<std::uint32_t>(counter_low >> 32),
      static_cast<std::uint32_t>(counter_high), static_cast<std::uint32_t>(counter_high >> 32)};
  auto k0 = static_cast<std::uint32_t>(key), k1 = static_cast<std::uint32_t>(key >> 32);
  for (int round = 0; round < 10; ++round) {
    const std::uint64_t product0 = kMultiplier0 * c[0], product1 = kMultiplier1 * c[2];
    c = {static_cast<std::uint32_t>(product1 >> 32) ^ c[1] ^ k0,
         static_cast<std::uint32_t>(product1),
         static_cast<std::uint32_t>(product0 >> 32) ^ c[3] ^ k1,
         static_cast<std::uint32_t>(product0)};
    k0 += kWeyl0;
    k1 += kWeyl1;
  }
  return c;
}

/// Uniform in [0, 1) with 24 bits, from one word.
constexpr float uniform01(std::uint32_t word) { return static_cast<float>(word >> 8) * 0x1p-24F; }

/// Standard normal from two words (Box and Muller, 1958), computed in double.
inline float normal(std::uint32_t a, std::uint32_t b) {
  constexpr double kTwoPi = 6.283185307179586476925286766559;
  const double u = (static_cast<double>(a) + 1.0) * 0x1p-32;  // in (0, 1]
  const double v = static_cast<double>(b) * 0x1p-32;
  return static_cast<float>(std::sqrt(-2.0 * std::log(u)) * std::cos(kTwoPi * v));
}

}  // namespace ringlet
