// What every processor has: vectors of four, sixteen registers assumed.
#include <cstdint>

#include "kernels/cpu/lanes/make_table.h"

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
  static constexpr int kFmaChains = 12;

  /// Lanes that are not less than or equal to 0: the positive ones, and NaNs.
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
  /// Lane l where bit `shift + l` of *bits is set, 0 elsewhere.
  static Vector keep(Vector v, const std::uint16_t* bits, int shift) {
    const Integers place = {1, 2, 4, 8};
    const Integers set = ((*bits >> shift) & place) == place;
    return reinterpret_cast<Vector>(reinterpret_cast<Integers>(v) & set);
  }
  /// max(0, v); a NaN stays.
  static Vector relu(Vector v) { return Vector{} > v ? Vector{} : v; }
  static float sum(Vector v) { return (v[0] + v[2]) + (v[1] + v[3]); }
};

const KernelTable& kernels_of(PortableSet) {
  static constexpr KernelTable kTable = make_table<Portable>();
  return kTable;
}

}  // namespace ringlet::lanes
