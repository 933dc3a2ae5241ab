// A stream of random numbers that starts at a 64-bit key. Drawn samples are made from it.
#pragma once

#include <cstdint>

#include "base/sampling.h"

namespace ringlet::data {

/// SplitMix64. The n-th number is a pure function of the key and n.
class Random {
 public:
  explicit constexpr Random(std::uint64_t key) : state_(mix64(key)) {}

  constexpr std::uint64_t bits() { return mix64(state_++); }
  /// Uniform in [0, 1).
  constexpr float uniform() { return static_cast<float>(bits() >> 40) * 0x1p-24F; }
  /// Uniform in [low, high).
  constexpr float between(float low, float high) { return low + (high - low) * uniform(); }
  constexpr bool chance(float probability) { return uniform() < probability; }

 private:
  std::uint64_t state_;
};

}  // namespace ringlet::data
