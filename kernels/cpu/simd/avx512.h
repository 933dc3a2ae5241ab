// AVX-512: one vector holds a block of sixteen samples; 32 registers.
#pragma once

#include <immintrin.h>

#include "kernels/cpu/simd/vectors.h"
#include "kernels/cpu/simd/x86_stores.h"

namespace ringlet::simd {

struct Avx512 : Registers<64>, X86Stores {
  // Accumulators + inputs + one weight stay below 32 registers.
  static constexpr int kGatherVectors = 2, kGatherOutputs = 13;
  static constexpr int kFilterOutputs = 5, kFilterTaps = 5;
  static constexpr int kDenseVectors = 2, kDenseOutputs = 13, kRowsOutputs = 8;
  static constexpr int kPooledOutputs = 6;
  static constexpr int kFmaChains = 24;

  using Mask = __mmask16;
  static Mask positive(Vector v) { return _mm512_cmp_ps_mask(v, _mm512_setzero_ps(), _CMP_NLE_UQ); }
  static unsigned bits(Mask mask) { return mask; }
  static Vector add_where(Mask mask, Vector sum, Vector v) {
    return _mm512_mask_add_ps(sum, mask, sum, v);
  }
  static Vector keep(Vector v, const std::uint16_t* bits, int) {
    return _mm512_maskz_mov_ps(_load_mask16(const_cast<__mmask16*>(bits)), v);
  }
  /// With a mask of ones: GCC 12 warns about its own header otherwise.
  static Vector relu(Vector v) { return _mm512_maskz_max_ps(0xFFFF, _mm512_setzero_ps(), v); }
  static float sum(Vector v) {
    const auto eight = __builtin_shufflevector(v, v, 0, 1, 2, 3, 4, 5, 6, 7) +
                       __builtin_shufflevector(v, v, 8, 9, 10, 11, 12, 13, 14, 15);
    const auto four = __builtin_shufflevector(eight, eight, 0, 1, 2, 3) +
                      __builtin_shufflevector(eight, eight, 4, 5, 6, 7);
    return (four[0] + four[2]) + (four[1] + four[3]);
  }

  static void line(std::byte* to, const std::byte* from) {
    _mm512_stream_si512(reinterpret_cast<__m512i*>(to), _mm512_loadu_si512(from));
  }
};

}  // namespace ringlet::simd
