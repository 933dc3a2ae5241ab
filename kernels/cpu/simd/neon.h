// NEON, which every aarch64 has: four vectors hold a block of sixteen samples; 32 registers.
#pragma once

#include <arm_neon.h>

#include <cstring>

#include "kernels/cpu/simd/vectors.h"

namespace ringlet::simd {

struct Neon : Registers<16> {
  // Accumulators + inputs + weights, four to a register, fill 32 registers.
  static constexpr int kGatherVectors = 4, kGatherOutputs = 6;
  static constexpr int kFilterOutputs = 4, kFilterTaps = 5;
  static constexpr int kDenseVectors = 4, kDenseOutputs = 6, kRowsOutputs = 6;
  static constexpr int kPooledOutputs = 6;
  static constexpr int kFmaChains = 24;

  /// A multiply-add takes its weight from any lane of a register: nothing is broadcast.
  static constexpr int kWeights = 4;
  template <int kCount>
  [[gnu::always_inline]] static auto weights(const float* from) {
    if constexpr (kCount == 1) return *from;
    if constexpr (kCount == 2) return vcombine_f32(vld1_f32(from), vdup_n_f32(0));
    if constexpr (kCount == 3) {
      return vld1q_lane_f32(from + 2, vcombine_f32(vld1_f32(from), vdup_n_f32(0)), 2);
    }
    if constexpr (kCount == 4) return vld1q_f32(from);
  }
  template <int kLane, class Weights>
  [[gnu::always_inline]] static Vector multiply_add(Vector sum, Vector v, Weights weights) {
    asm("fmla %0.4s, %1.4s, %2.s[%c3]" : "+w"(sum) : "w"(v), "w"(weights), "i"(kLane));
    return sum;
  }

  using Mask = Words;
  static Mask positive(Vector v) { return ~vclezq_f32(v); }
  static unsigned bits(Mask mask) { return vaddvq_u32(mask & Words{1, 2, 4, 8}); }
  static Vector add_where(Mask mask, Vector sum, Vector v) {
    return sum + reinterpret_cast<Vector>(reinterpret_cast<Words>(v) & mask);
  }
  static Vector keep(Vector v, const std::uint16_t* bits, int shift) {
    const Words set = vtstq_u32(vdupq_n_u32(*bits), Words{1, 2, 4, 8} << shift);
    return reinterpret_cast<Vector>(reinterpret_cast<Words>(v) & set);
  }
  /// As on x86, -0 stays: the processor's own maximum is +0.
  static Vector relu(Vector v) {
    return reinterpret_cast<Vector>(vbicq_u32(reinterpret_cast<Words>(v), vcltzq_f32(v)));
  }
  static float sum(Vector v) { return vaddv_f32(vadd_f32(vget_low_f32(v), vget_high_f32(v))); }

  /// Four numbers to f16, with the bits of narrow_floats.h: of the processor's own, a NaN keeps
  /// what else it holds.
  static void narrow_half(const float* from, std::uint16_t* to) {
    const float32x4_t v = vld1q_f32(from);
    const uint16x4_t numbers = vreinterpret_u16_f16(vcvt_f16_f32(v));
    const uint16x4_t nans = vorr_u16(vand_u16(numbers, vdup_n_u16(0x8000)), vdup_n_u16(0x7E00));
    vst1_u16(to, vbsl_u16(vmovn_u32(vceqq_f32(v, v)), numbers, nans));
  }

  // Stores like any others: what they are ordered by is what follows.
  static void line(std::byte* to, const std::byte* from) { std::memcpy(to, from, 64); }
  static void end() {}
  static void across(void* to, const void* from, std::size_t bytes) {
    std::memcpy(to, from, bytes);
  }
};

// bf16, with the same bits as vectors.h, in half as many instructions.
template <>
[[gnu::always_inline]] inline Neon::Vector load<Neon>(const Bf16Bits* from) {
  return vreinterpretq_f32_u32(vshll_n_u16(vld1_u16(from), 16));
}
template <>
[[gnu::always_inline]] inline void store<Neon>(Bf16Bits* to, Neon::Vector v) {
  const uint32x4_t bits = vreinterpretq_u32_f32(v);
  const uint32x4_t odd = vandq_u32(vshrq_n_u32(bits, 16), vdupq_n_u32(1));
  const uint16x4_t rounded = vaddhn_u32(bits, vaddq_u32(odd, vdupq_n_u32(0x7FFF)));
  const uint16x4_t quiet = vorr_u16(vshrn_n_u32(bits, 16), vdup_n_u16(0x40));
  vst1_u16(to, vbsl_u16(vmovn_u32(vceqq_f32(v, v)), rounded, quiet));
}

}  // namespace ringlet::simd
