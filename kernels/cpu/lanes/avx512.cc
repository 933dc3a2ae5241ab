// AVX-512: one vector holds a block of sixteen samples; 32 registers.
#include <immintrin.h>

#include <cstdint>

#include "kernels/cpu/lanes/make_table.h"

namespace ringlet::lanes {

struct Avx512 {
  typedef float Vector __attribute__((vector_size(64)));
  typedef float Unaligned __attribute__((vector_size(64), aligned(4), may_alias));
  typedef std::int32_t Integers __attribute__((vector_size(64)));
  typedef std::int32_t UnalignedIntegers __attribute__((vector_size(64), aligned(4), may_alias));

  static constexpr int kWidth = 16;
  // Accumulators + inputs + one weight stay below 32 registers.
  static constexpr int kGatherVectors = 2, kGatherOutputs = 13;
  static constexpr int kFilterOutputs = 5, kFilterTaps = 5;
  static constexpr int kDenseVectors = 2, kDenseOutputs = 13, kRowsOutputs = 8;
  static constexpr int kPooledOutputs = 6;
  static constexpr int kFmaChains = 24;

  /// Lanes that are not less than or equal to 0: the positive ones, and NaNs.
  using Mask = __mmask16;
  static Mask positive(Vector v) { return _mm512_cmp_ps_mask(v, _mm512_setzero_ps(), _CMP_NLE_UQ); }
  static unsigned bits(Mask mask) { return mask; }
  static Vector add_where(Mask mask, Vector sum, Vector v) {
    return _mm512_mask_add_ps(sum, mask, sum, v);
  }
  /// Lane l where bit `shift + l` of *bits is set, 0 elsewhere.
  static Vector keep(Vector v, const std::uint16_t* bits, int) {
    return _mm512_maskz_mov_ps(_load_mask16(const_cast<__mmask16*>(bits)), v);
  }
  /// max(0, v); a NaN stays. (With a mask of ones: GCC 12 warns about its own header otherwise.)
  static Vector relu(Vector v) { return _mm512_maskz_max_ps(0xFFFF, _mm512_setzero_ps(), v); }
  static float sum(Vector v) {
    const auto eight = __builtin_shufflevector(v, v, 0, 1, 2, 3, 4, 5, 6, 7) +
                       __builtin_shufflevector(v, v, 8, 9, 10, 11, 12, 13, 14, 15);
    const auto four = __builtin_shufflevector(eight, eight, 0, 1, 2, 3) +
                      __builtin_shufflevector(eight, eight, 4, 5, 6, 7);
    return (four[0] + four[2]) + (four[1] + four[3]);
  }
};

const KernelTable& kernels_of(Avx512Set) {
  static constexpr KernelTable kTable = make_table<Avx512>();
  return kTable;
}

}  // namespace ringlet::lanes
