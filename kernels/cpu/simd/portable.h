// What every processor has: vectors of four, sixteen registers assumed.
#pragma once

#include <cstring>

#include "kernels/cpu/simd/vectors.h"

namespace ringlet::simd {

struct Portable : Registers<16> {
  static constexpr int kGatherVectors = 2, kGatherOutputs = 5;
  static constexpr int kFilterOutputs = 3, kFilterTaps = 3;
  static constexpr int kDenseVectors = 2, kDenseOutputs = 5, kRowsOutputs = 5;
  static constexpr int kPooledOutputs = 2;
  static constexpr int kFmaChains = 12;

  using Mask = Integers;
  static Mask positive(Vector v) { return ~(v <= Vector{}); }
  static unsigned bits(Mask mask) {
    unsigned result = 0;
    for (int lane = 0; lane < kWidth; ++lane) {
      result |= static_cast<unsigned>(mask[lane] & 1) << lane;
    }
    return result;
  }
  static Vector add_where(Mask mask, Vector sum, Vector v) {
    return sum + reinterpret_cast<Vector>(reinterpret_cast<Integers>(v) & mask);
  }
  static Vector keep(Vector v, const std::uint16_t* bits, int shift) {
    const Integers bit = {1, 2, 4, 8};
    const Integers set = ((*bits >> shift) & bit) == bit;
    return reinterpret_cast<Vector>(reinterpret_cast<Integers>(v) & set);
  }
  static Vector relu(Vector v) { return Vector{} > v ? Vector{} : v; }
  static float sum(Vector v) { return (v[0] + v[2]) + (v[1] + v[3]); }

  // Stores like any others.
  static void line(std::byte* to, const std::byte* from) { std::memcpy(to, from, 64); }
  static void end() {}
  static void across(void* to, const void* from, std::size_t bytes) {
    std::memcpy(to, from, bytes);
  }
};

}  // namespace ringlet::simd
