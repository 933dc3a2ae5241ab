// What an instruction makes of a thread's values.
#pragma once

#include <algorithm>
#include <bit>
#include <cfenv>
#include <cmath>
#include <cstdint>
#include <type_traits>

namespace ringlet::ptx {

// Integers are added, negated and multiplied without signs, which cannot overflow.
template <class T>
using Unsigned = std::make_unsigned_t<T>;

constexpr auto kAdd = [](auto a, auto b) {
  using T = decltype(a);
  if constexpr (std::is_integral_v<T>) {
    return static_cast<T>(Unsigned<T>(a) + Unsigned<T>(b));
  } else {
    return a + b;
  }
};
constexpr auto kSubtract = [](auto a, auto b) {
  using T = decltype(a);
  if constexpr (std::is_integral_v<T>) {
    return static_cast<T>(Unsigned<T>(a) - Unsigned<T>(b));
  } else {
    return a - b;
  }
};
constexpr auto kMultiply = [](auto a, auto b) {
  using T = decltype(a);
  if constexpr (std::is_integral_v<T>) {
    return static_cast<T>(std::uint64_t(a) * std::uint64_t(b));
  } else {
    return a * b;
  }
};
constexpr auto kDivide = [](auto a, auto b) {
  using T = decltype(a);
  if constexpr (!std::is_integral_v<T>) {
    return a / b;
  } else {
    if (b == 0) return static_cast<T>(-1);
    if constexpr (std::is_signed_v<T>) {
      if (b == -1) return static_cast<T>(-Unsigned<T>(a));
    }
    return static_cast<T>(a / b);
  }
};
// Of a number and a NaN, the number.
constexpr auto kLeast = [](auto a, auto b) {
  if constexpr (std::is_integral_v<decltype(a)>)
    return std::min(a, b);
  else
    return std::fmin(a, b);
};
constexpr auto kMost = [](auto a, auto b) {
  if constexpr (std::is_integral_v<decltype(a)>)
    return std::max(a, b);
  else
    return std::fmax(a, b);
};
constexpr auto kAnd = [](auto a, auto b) { return a & b; };
constexpr auto kOr = [](auto a, auto b) { return a | b; };
constexpr auto kXor = [](auto a, auto b) { return a ^ b; };
constexpr auto kNot = [](auto a) { return ~a; };
constexpr auto kNotPredicate = [](auto a) { return a == 0; };
constexpr auto kNegate = [](auto a) {
  using T = decltype(a);
  if constexpr (std::is_integral_v<T>)
    return static_cast<T>(-Unsigned<T>(a));
  else
    return -a;
};
constexpr auto kMagnitude = [](auto a) { return std::abs(a); };
constexpr auto kFma = [](auto a, auto b, auto c) { return std::fma(a, b, c); };
constexpr auto kMultiplyAdd = [](auto a, auto b, auto c) { return kAdd(kMultiply(a, b), c); };
constexpr auto kSignOfFirst = [](auto a, auto b) { return std::copysign(b, a); };
constexpr auto kRoot = [](auto a) { return std::sqrt(a); };
constexpr auto kReciprocal = [](auto a) { return 1 / a; };
constexpr auto kLeft = [](auto a, std::uint32_t by) {
  return by >= 8 * sizeof a ? decltype(a){0} : static_cast<decltype(a)>(a << by);
};
constexpr auto kRight = [](auto a, std::uint32_t by) {
  const auto most = static_cast<std::uint32_t>(8 * sizeof a - 1);
  if (std::is_unsigned_v<decltype(a)> && by > most) return decltype(a){0};
  return static_cast<decltype(a)>(a >> std::min(by, most));
};

inline float flushed(float x) {
  return std::fpclassify(x) == FP_SUBNORMAL ? std::copysign(0.0F, x) : x;
}
// A GPU's approximations differ from these in the last bits.
constexpr auto kPowerOfTwo = [](float a) { return flushed(std::exp2(flushed(a))); };
constexpr auto kAboutReciprocal = [](auto a) {
  if constexpr (sizeof a == 4) {
    return flushed(1 / flushed(a));
  } else {  // the upper half of a double is right
    return std::bit_cast<double>(std::bit_cast<std::uint64_t>(1 / a) & ~std::uint64_t{0xFFFFFFFF});
  }
};

template <int kMode>
constexpr auto kAddTo = [](float a, float b) {
  std::fesetround(kMode);
  const volatile float x = a, y = b;
  const volatile float sum = x + y;
  std::fesetround(FE_TONEAREST);
  return float{sum};
};
constexpr auto kFmaDown = [](float a, float b, float c) {
  std::fesetround(FE_DOWNWARD);
  const volatile float x = a, y = b, z = c;
  const volatile float sum = std::fma(x, y, z);
  std::fesetround(FE_TONEAREST);
  return float{sum};
};

}  // namespace ringlet::ptx
