// The vectors of an instruction set, and what all sets have alike. Loops on the CPU are templates
// over a set S, a struct with:
//
//   Vector, Integers, Words, Halves    floats in a register, 32-bit integers with a sign and
//                                      without, and as many 16-bit ones; Unaligned...: the same at
//                                      any address
//   kWidth                             floats in a Vector, a divisor of 16
//   kGatherVectors, kFmaChains, ...    what its registers hold at once (lanes/kernel_table.h)
//   kWeights                           numbers that one register gives to multiply_add, as weights
//   Vector weights<count>(from)        from[0, count), count <= kWeights
//   Vector multiply_add<i>(sum, v, w)  sum + v * weight i of w
//   Mask positive(v)                   lanes that are not less than or equal to 0: also NaNs
//   unsigned bits(mask)                a bit a lane
//   Vector add_where(mask, sum, v)     sum + v where the mask is set, else sum
//   Vector keep(v, bits, shift)        v where bit `shift + lane` of *bits is set, else 0
//   Vector relu(v)                     max(0, v); a NaN stays
//   float sum(v)                       of all lanes
//   line(to, from)                     to[0, 64) = from[0, 64), past the caches; `to` begins a line
//   end()                              orders these stores before what follows
//   across(to, from, bytes)            copies by whole lines that need not be read before; these
//                                      stay in the caches
//
// A file of loops is compiled for each set (cmake/RingletInstructionSets.cmake), with the set's
// struct as RINGLET_SIMD, its header as RINGLET_SIMD_HEADER, and its tag as RINGLET_SET. Every
// template has the set as a parameter, which keeps the sets' functions apart for the linker: so it
// can never pick the AVX-512 copy for everybody. A further set is a header more, and its lines in
// CMake.
#pragma once

#include <cstddef>
#include <cstdint>

namespace ringlet::simd {

template <int kBytes>
struct Registers {
  static constexpr int kWidth = kBytes / 4;

  typedef float Vector __attribute__((vector_size(kBytes)));
  typedef float Unaligned __attribute__((vector_size(kBytes), aligned(4), may_alias));
  typedef std::int32_t Integers __attribute__((vector_size(kBytes)));
  typedef std::int32_t UnalignedIntegers
      __attribute__((vector_size(kBytes), aligned(4), may_alias));
  typedef std::uint32_t Words __attribute__((vector_size(kBytes)));
  typedef std::uint16_t Halves __attribute__((vector_size(kBytes / 2)));
  typedef std::uint16_t UnalignedHalves
      __attribute__((vector_size(kBytes / 2), aligned(2), may_alias));

  static constexpr int kWeights = 1;
  template <int kCount>
  [[gnu::always_inline]] static Vector weights(const float* from) {
    return *from - Vector{};
  }
  template <int kLane>
  [[gnu::always_inline]] static Vector multiply_add(Vector sum, Vector v, Vector weights) {
    return sum + weights * v;
  }
};

using Bf16Bits = std::uint16_t;

template <class S>
[[gnu::always_inline]] inline typename S::Vector load(const float* from) {
  return *reinterpret_cast<const typename S::Unaligned*>(from);
}
template <class S>
[[gnu::always_inline]] inline void store(float* to, typename S::Vector v) {
  *reinterpret_cast<typename S::Unaligned*>(to) = v;
}
template <class S>
[[gnu::always_inline]] inline typename S::Vector broadcast(float value) {
  return value - typename S::Vector{};
}

/// The upper halves of `bits`, rounded to nearest, ties to even; of a NaN, a quiet one. I: a vector
/// of unsigned integers, or one.
template <class S, class I>
[[gnu::always_inline]] inline I upper_halves(I bits) {
  const I rounded = (bits + 0x7FFFU + ((bits >> 16) & 1U)) >> 16;
  const I quiet = (bits >> 16) | 0x40U;
  return (bits & 0x7FFFFFFFU) > 0x7F800000U ? quiet : rounded;
}

template <class S>
[[gnu::always_inline]] inline typename S::Vector load(const Bf16Bits* from) {
  const auto narrow = *reinterpret_cast<const typename S::UnalignedHalves*>(from);
  return reinterpret_cast<typename S::Vector>(__builtin_convertvector(narrow, typename S::Words)
                                              << 16);
}
template <class S>
[[gnu::always_inline]] inline void store(Bf16Bits* to, typename S::Vector v) {
  const auto halves = upper_halves<S>(reinterpret_cast<typename S::Words>(v));
  *reinterpret_cast<typename S::UnalignedHalves*>(to) =
      __builtin_convertvector(halves, typename S::Halves);
}

/// One number, of the types of the above.
template <class S>
[[gnu::always_inline]] inline float number(const float* from) {
  return *from;
}
template <class S>
[[gnu::always_inline]] inline void put(float* to, float v) {
  *to = v;
}
template <class S>
[[gnu::always_inline]] inline float number(const Bf16Bits* from) {
  return __builtin_bit_cast(float, static_cast<std::uint32_t>(*from) << 16);
}
template <class S>
[[gnu::always_inline]] inline void put(Bf16Bits* to, float v) {
  *to = static_cast<Bf16Bits>(upper_halves<S>(__builtin_bit_cast(std::uint32_t, v)));
}

}  // namespace ringlet::simd
