// The arithmetic of a reduction, and of a cast, one element at a time, for the loops of every
// device. Narrow floats are widened, reduced in f32 and rounded once; integers wrap around.
#pragma once

#include <bit>
#include <cstdint>
#include <limits>
#include <type_traits>

#include "base/error.h"
#include "base/host_device.h"
#include "kernels/narrow_floats.h"
#include "kernels/reduce_op.h"
#include "kernels/tensor.h"

namespace ringlet {

template <>
struct DTypeOf<Half> {
  static constexpr DType value = DType::f16;
};
template <>
struct DTypeOf<BFloat16> {
  static constexpr DType value = DType::bf16;
};

namespace reduction {

/// The type in which elements of type T are reduced.
template <class T>
using Accumulator = std::conditional_t<std::is_same_v<T, std::int32_t>, std::int32_t, float>;

RINGLET_HOST_DEVICE constexpr float load(float x) { return x; }
RINGLET_HOST_DEVICE constexpr std::int32_t load(std::int32_t x) { return x; }
RINGLET_HOST_DEVICE constexpr float load(Half x) { return widen(x); }
RINGLET_HOST_DEVICE constexpr float load(BFloat16 x) { return widen(x); }

template <class T>
RINGLET_HOST_DEVICE constexpr T round_to(Accumulator<T> x) {
  if constexpr (std::is_same_v<T, Half>) {
    return to_half(x);
  } else if constexpr (std::is_same_v<T, BFloat16>) {
    return to_bfloat16(x);
  } else {
    return x;
  }
}

struct Sum {
  RINGLET_HOST_DEVICE constexpr float operator()(float a, float b) const { return a + b; }
  RINGLET_HOST_DEVICE constexpr std::int32_t operator()(std::int32_t a, std::int32_t b) const {
    return static_cast<std::int32_t>(static_cast<std::uint32_t>(a) + static_cast<std::uint32_t>(b));
  }
};

// The least and the greatest have the same bits whichever side a number is on, so that two ranks
// which each combine their own number with the other's end alike: -0 is less than +0, and a NaN on
// either side gives one and the same NaN. (With | and not ||, since a vector loop has no branches.)

RINGLET_HOST_DEVICE constexpr float nan_or(float a, float b, float otherwise) {
  return ((a != a) | (b != b)) ? std::numeric_limits<float>::quiet_NaN() : otherwise;
}

struct Min {
  RINGLET_HOST_DEVICE constexpr float operator()(float a, float b) const {
    const auto either = std::bit_cast<std::uint32_t>(a) | std::bit_cast<std::uint32_t>(b);
    return nan_or(a, b, a == b ? std::bit_cast<float>(either) : (b < a ? b : a));
  }
  RINGLET_HOST_DEVICE constexpr std::int32_t operator()(std::int32_t a, std::int32_t b) const {
    return b < a ? b : a;
  }
};

struct Max {
  RINGLET_HOST_DEVICE constexpr float operator()(float a, float b) const {
    const auto both = std::bit_cast<std::uint32_t>(a) & std::bit_cast<std::uint32_t>(b);
    return nan_or(a, b, a == b ? std::bit_cast<float>(both) : (b > a ? b : a));
  }
  RINGLET_HOST_DEVICE constexpr std::int32_t operator()(std::int32_t a, std::int32_t b) const {
    return b > a ? b : a;
  }
};

/// Throws ContractError. Not inline: an object for AVX2 that threw would define the exception's
/// functions, and the linker may take these for the whole program.
[[noreturn]] void refuse_type(const char* message);

/// visit(From{}, To{}) for a cast between f32 and a narrow float, either way.
template <class Visitor>
void visit_cast(DType from, DType to, Visitor&& visitor) {
  if (from == DType::f32 && to == DType::f16) return visitor(float{}, Half{});
  if (from == DType::f32 && to == DType::bf16) return visitor(float{}, BFloat16{});
  if (from == DType::f16 && to == DType::f32) return visitor(Half{}, float{});
  if (from == DType::bf16 && to == DType::f32) return visitor(BFloat16{}, float{});
  refuse_type("cast: there is no such pair of element types");
}

/// visit(T{}) for the float that activations of type `dtype` are.
template <class Visitor>
void visit_activations(DType dtype, Visitor&& visitor) {
  if (dtype == DType::f32) return visitor(float{});
  if (dtype == DType::bf16) return visitor(BFloat16{});
  if (dtype == DType::f16) return visitor(Half{});
  throw ContractError("activations should be f32, bf16 or f16");
}

/// visit(T{}, Combine{}) for the types that `dtype` and `op` stand for; ReduceOp::mean adds.
template <class Visitor>
void visit(ReduceOp op, DType dtype, Visitor&& visitor) {
  const auto with_type = [&](auto element) {
    if (op == ReduceOp::min) return visitor(element, Min{});
    if (op == ReduceOp::max) return visitor(element, Max{});
    return visitor(element, Sum{});
  };
  switch (dtype) {
    case DType::f32:
      return with_type(float{});
    case DType::f16:
      return with_type(Half{});
    case DType::bf16:
      return with_type(BFloat16{});
    case DType::i32:
      return with_type(std::int32_t{});
    case DType::u8:
      break;
  }
  refuse_type("reduce: there is no such element type");
}

}  // namespace reduction
}  // namespace ringlet
