// The narrow floats by their definition, for tests: slow, and without a trick.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <limits>
#include <type_traits>
#include <vector>

#include "kernels/narrow_floats.h"

namespace ringlet::test {

/// The value of sixteen bits with so many of exponent and mantissa.
inline double value_of(std::uint16_t bits, int exponent_bits, int mantissa_bits) {
  const int sign = bits >> 15U;
  const int exponent = (bits >> mantissa_bits) & ((1 << exponent_bits) - 1);
  const int mantissa = bits & ((1 << mantissa_bits) - 1);
  const int bias = (1 << (exponent_bits - 1)) - 1;
  double value = 0;
  if (exponent == (1 << exponent_bits) - 1) {
    value = mantissa == 0 ? std::numeric_limits<double>::infinity()
                          : std::numeric_limits<double>::quiet_NaN();
  } else {
    const int hidden = exponent == 0 ? 0 : 1 << mantissa_bits;
    value = std::ldexp(hidden + mantissa, std::max(exponent, 1) - bias - mantissa_bits);
  }
  return sign == 0 ? value : -value;
}

inline double widened(float x) { return static_cast<double>(x); }
inline double widened(std::int32_t x) { return x; }
inline double widened(Half x) { return value_of(x.bits, 5, 10); }
inline double widened(BFloat16 x) { return value_of(x.bits, 8, 7); }

/// The nearest T; in the middle between two, the one whose last bit is 0.
template <class T>
T narrowed(double x) {
  if constexpr (std::is_arithmetic_v<T>) {
    return static_cast<T>(x);
  } else {
    // Positive numbers are in the order of their bits, the last being infinity, which counts as if
    // the exponents went on.
    std::uint16_t low = 0, high = std::is_same_v<T, Half> ? 0x7C00 : 0x7F80;
    const double top = 2 * widened(T{static_cast<std::uint16_t>(high - 1)}) -
                       widened(T{static_cast<std::uint16_t>(high - 2)});
    const auto value = [high, top](std::uint16_t bits) {
      return bits == high ? top : widened(T{bits});
    };
    const double size = std::min(std::abs(x), top);
    while (high - low > 1) {
      const auto middle = static_cast<std::uint16_t>((low + high) / 2);
      (value(middle) <= size ? low : high) = middle;
    }
    const double below = size - value(low), above = value(high) - size;
    const bool up = above < below || (above == below && low % 2 == 1);
    const auto bits = static_cast<std::uint16_t>(up ? high : low);
    return T{static_cast<std::uint16_t>(bits | (std::signbit(x) ? 0x8000U : 0U))};
  }
}

}  // namespace ringlet::test
