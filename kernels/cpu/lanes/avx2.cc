// AVX2 with FMA: two vectors hold a block of sixteen samples; 16 registers.
#include <immintrin.h>

#include <cstdint>

#include "kernels/cpu/lanes/make_table.h"

namespace ringlet::lanes {

struct Avx2 {
  typedef float Vector __attribute__((vector_size(32)));
  typedef float Unaligned __attribute__((vector_size(32), aligned(4), may_alias));
  typedef std::int32_t Integers __attribute__((vector_size(32)));
  typedef std::int32_t UnalignedIntegers __attribute__((vector_size(32), aligned(4), may_alias));

  static constexpr int kWidth = 8;
  // Accumulators + inputs + one weight stay below 16 registers.
  static constexpr int kGatherVectors = 2, kGatherOutputs = 6;
  static constexpr int kFilterOutputs = 3, kFilterTaps = 4;
  static constexpr int kDenseVectors = 2, kDenseOutputs = 6, kRowsOutputs = 6;
  static constexpr int kPooledOutputs = 2;
  static constexpr int kFmaChains = 12;

  /// Lanes that are not less than or equal to 0: the positive ones, and NaNs.
  using Mask = Vector;
  static Mask positive(Vector v) { return _mm256_cmp_ps(v, _mm256_setzero_ps(), _CMP_NLE_UQ); }
  static unsigned bits(Mask mask) { return static_cast<unsigned>(_mm256_movemask_ps(mask)); }
  static Vector add_where(Mask mask, Vector sum, Vector v) { return sum + _mm256_and_ps(mask, v); }
  /// Lane l where bit `shift + l` of *bits is set, 0 elsewhere.
  static Vector keep(Vector v, const std::uint16_t* bits, int shift) {
    const Integers place = {1, 2, 4, 8, 16, 32, 64, 128};
    const Integers set = ((*bits >> shift) & place) == place;
    return reinterpret_cast<Vector>(reinterpret_cast<Integers>(v) & set);
  }
  /// max(0, v); a NaN stays.
  static Vector relu(Vector v) { return _mm256_max_ps(_mm256_setzero_ps(), v); }
  static float sum(Vector v) {
    const __m128 four = _mm_add_ps(_mm256_castps256_ps128(v), _mm256_extractf128_ps(v, 1));
    const __m128 two = _mm_add_ps(four, _mm_movehl_ps(four, four));
    return two[0] + two[1];
  }
};

const KernelTable& kernels_of(Avx2Set) {
  static constexpr KernelTable kTable = make_table<Avx2>();
  return kTable;
}

}  // namespace ringlet::lanes
