// What every processor has: vectors of four, sixteen registers assumed.
#pragma once

#include <cstdint>

namespace ringlet::lanes {

struct Portable {
  typedef float Vector __attribute__((vector_size(16)));
  typedef float Unaligned __attribute__((vector_size(16), aligned(4), may_alias));
  typedef std::int32_t Integers __attribute__((vector_size(16)));
  typedef std::int32_t UnalignedIntegers __attribute__((vector_size(16), aligned(4), may_alias));

  static constexpr int kWidth = 4;
  static constexpr int kGatherVectors = 2, kGatherOutputs = 5;
  static constexpr int kFilterOutputs = 3, kFilterTaps = 3;
  static constexpr int kDenseVectors = 2, kDenseOutputs = 5, kRowsOutputs = 5;
  static constexpr int kPooledOutputs = 2;

  /// Bit l is set where lane l is greater than 0.
  static unsigned positive_bits(Vector v) {
    unsigned bits = 0;
    for (int lane = 0; lane < kWidth; ++lane) bits |= static_cast<unsigned>(v[lane] > 0) << lane;
    return bits;
  }
  /// Lane l where bit `shift + l` of *bits is set, 0 elsewhere.
  static Vector keep(Vector v, const std::uint16_t* bits, int shift) {
    const Integers place = {1, 2, 4, 8};
    const Integers set = ((*bits >> shift) & place) == place;
    return reinterpret_cast<Vector>(reinterpret_cast<Integers>(v) & set);
  }
  static float sum(Vector v) { return (v[0] + v[2]) + (v[1] + v[3]); }
};

}  // namespace ringlet::lanes
