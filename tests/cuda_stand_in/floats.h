// Floats of the types that the stand-in's libraries take, in f32 and back.
#pragma once

#include <algorithm>
#include <bit>
#include <cstddef>
#include <cstdint>

#include "kernels/reduction.h"

namespace ringlet::stand_in {

/// body(data as floats of type `dtype`).
template <class Body>
void with_floats(DType dtype, void* data, const Body& body) {
  reduction::visit_activations(dtype, [&]<class T>(T) { body(static_cast<T*>(data)); });
}

/// to[i] = from[i] as f32.
inline void widen_floats(DType dtype, const void* from, std::size_t count, float* to) {
  with_floats(dtype, const_cast<void*>(from), [&](const auto* data) {
    for (std::size_t i = 0; i < count; ++i) to[i] = reduction::load(data[i]);
  });
}

/// to[i] = from[i], rounded.
inline void round_floats(DType dtype, const float* from, std::size_t count, void* to) {
  with_floats(dtype, to, [&]<class T>(T* data) {
    for (std::size_t i = 0; i < count; ++i) data[i] = reduction::round_to<T>(from[i]);
  });
}

/// As tensor cores take f32: TF32 has ten of its 23 bits. Nearest; ties go away from zero.
inline float to_tf32(float x) {
  auto bits = std::bit_cast<std::uint32_t>(x);
  constexpr std::uint32_t kExponent = 0x7F800000U;
  if ((bits & kExponent) != kExponent) bits = (bits + 0x1000U) & ~0x1FFFU;
  return std::bit_cast<float>(bits);
}

/// Of a sum's terms: libraries add them in parts, which are added up.
inline constexpr std::int64_t kPart = 128;

/// The sum of term(0) to term(count - 1).
template <class Term>
float sum_in_parts(std::int64_t count, const Term& term) {
  float sum = 0;
  for (std::int64_t begin = 0; begin < count; begin += kPart) {
    float part = 0;
    for (std::int64_t i = begin; i < std::min(begin + kPart, count); ++i) part += term(i);
    sum += part;
  }
  return sum;
}

}  // namespace ringlet::stand_in
