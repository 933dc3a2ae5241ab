// AVX2 with FMA: two vectors hold a block of sixteen samples; 16 registers.
#pragma once

#include <immintrin.h>

#include "kernels/cpu/simd/vectors.h"
#include "kernels/cpu/simd/x86_stores.h"

namespace ringlet::simd {

struct Avx2 : Registers<32>, X86Stores {
  // Accumulators + inputs + one weight stay below 16 registers.
  static constexpr int kGatherVectors = 2, kGatherOutputs = 6;
  static constexpr int kFilterOutputs = 3, kFilterTaps = 4;
  static constexpr int kDenseVectors = 2, kDenseOutputs = 6, kRowsOutputs = 6;
  static constexpr int kPooledOutputs = 2;
  static constexpr int kFmaChains = 12;

  using Mask = Vector;
  static Mask positive(Vector v) { return _mm256_cmp_ps(v, _mm256_setzero_ps(), _CMP_NLE_UQ); }
  static unsigned bits(Mask mask) { return static_cast<unsigned>(_mm256_movemask_ps(mask)); }
  static Vector add_where(Mask mask, Vector sum, Vector v) { return sum + _mm256_and_ps(mask, v); }
  static Vector keep(Vector v, const std::uint16_t* bits, int shift) {
    const Integers bit = {1, 2, 4, 8, 16, 32, 64, 128};
    const Integers set = ((*bits >> shift) & bit) == bit;
    return reinterpret_cast<Vector>(reinterpret_cast<Integers>(v) & set);
  }
  static Vector relu(Vector v) { return _mm256_max_ps(_mm256_setzero_ps(), v); }
  static float sum(Vector v) {
    const __m128 four = _mm_add_ps(_mm256_castps256_ps128(v), _mm256_extractf128_ps(v, 1));
    const __m128 two = _mm_add_ps(four, _mm_movehl_ps(four, four));
    return two[0] + two[1];
  }

  static void line(std::byte* to, const std::byte* from) {
    for (std::size_t i = 0; i < 64; i += sizeof(__m256i)) {
      _mm256_stream_si256(reinterpret_cast<__m256i*>(to + i),
                          _mm256_loadu_si256(reinterpret_cast<const __m256i*>(from + i)));
    }
  }
};

}  // namespace ringlet::simd
