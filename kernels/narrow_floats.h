// The two sixteen-bit floats, as bits, and their conversion to and from f32. Shared by the loops of
// every device, and free of branches so that loops can be vectorised.
//
//   Half      IEEE 754 binary16: sign, 5 exponent bits, 10 of mantissa; up to 65504, steps of 2^-11
//   BFloat16  the upper half of an f32: its range, and 8 bits of precision
//
// Narrowing rounds to nearest, ties to even. What is too large becomes infinite, a NaN stays one. A
// GPU has instructions for all of it, from compute capability 8.0 on, which give the same bits but
// for a NaN's.
#pragma once

#include <bit>
#include <cstdint>

#include "base/host_device.h"

namespace ringlet {

struct Half {
  std::uint16_t bits = 0;
};

struct BFloat16 {
  std::uint16_t bits = 0;
};

RINGLET_HOST_DEVICE constexpr float widen(BFloat16 x) {
  return std::bit_cast<float>(static_cast<std::uint32_t>(x.bits) << 16U);
}

RINGLET_HOST_DEVICE constexpr float widen(Half x) {
#ifdef __CUDA_ARCH__
  float wide;
  asm("cvt.f32.f16 %0, %1;" : "=f"(wide) : "h"(x.bits));
  return wide;
#else
  // The exponent becomes f32's by a product, which makes subnormal numbers normal as well.
  const std::uint32_t magnitude = (x.bits & 0x7FFFU) << 13U;
  const bool is_finite = (x.bits & 0x7C00U) != 0x7C00U;
  const auto scaled = std::bit_cast<std::uint32_t>(std::bit_cast<float>(magnitude) * 0x1p112F);
  const std::uint32_t sign = (x.bits & 0x8000U) << 16U;
  return std::bit_cast<float>((is_finite ? scaled : magnitude | 0x7F800000U) | sign);
#endif
}

RINGLET_HOST_DEVICE constexpr BFloat16 to_bfloat16(float x) {
#ifdef __CUDA_ARCH__
  BFloat16 narrow;
  asm("cvt.rn.bf16.f32 %0, %1;" : "=h"(narrow.bits) : "f"(x));
  return narrow;
#else
  const auto bits = std::bit_cast<std::uint32_t>(x);
  const bool is_nan = (bits & 0x7FFFFFFFU) > 0x7F800000U;
  const std::uint32_t rounded = (bits + 0x7FFFU + ((bits >> 16U) & 1U)) >> 16U;
  const std::uint32_t quiet = (bits >> 16U) | 0x40U;
  return {static_cast<std::uint16_t>(is_nan ? quiet : rounded)};
#endif
}

RINGLET_HOST_DEVICE constexpr Half to_half(float x) {
#ifdef __CUDA_ARCH__
  Half narrow;
  asm("cvt.rn.f16.f32 %0, %1;" : "=h"(narrow.bits) : "f"(x));
  return narrow;
#else
  const auto bits = std::bit_cast<std::uint32_t>(x);
  const std::uint32_t magnitude = bits & 0x7FFFFFFFU;
  const std::uint32_t sign = (bits >> 16U) & 0x8000U;
  // Below 2^-14 the steps are those of an f32 in [0.5, 1): adding 0.5 rounds to them.
  const std::uint32_t subnormal =
      std::bit_cast<std::uint32_t>(std::bit_cast<float>(magnitude) + 0.5F) - 0x3F000000U;
  const std::uint32_t normal =
      (magnitude + 0xFFFU + ((magnitude >> 13U) & 1U) - 0x38000000U) >> 13U;
  const std::uint32_t finite = magnitude < 0x38800000U ? subnormal : normal;
  const std::uint32_t bounded = magnitude >= 0x47800000U ? 0x7C00U : finite;
  const std::uint32_t result = magnitude > 0x7F800000U ? 0x7E00U : bounded;
  return {static_cast<std::uint16_t>(result | sign)};
#endif
}

}  // namespace ringlet
