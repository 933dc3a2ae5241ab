// Accumulators in registers: loops over a tile are unrolled by the compiler's front end, so that
// every element of a tile is a variable of its own.
#pragma once

#include <cstdint>
#include <utility>

#include "kernels/cpu/simd/vectors.h"

namespace ringlet::lanes {

template <int kValue>
struct Constant {
  static constexpr int value = kValue;
  [[gnu::always_inline]] constexpr operator int() const {
    return kValue;
  }  // NOLINT: stands for the number
};

template <class F, int... kValues>
[[gnu::always_inline]] inline void call_with(std::integer_sequence<int, kValues...>,
                                             const F& body) {
  (body(Constant<kValues>{}), ...);
}

/// body(Constant<0>) ... body(Constant<kCount - 1>), side by side: a call inside the one before it
/// would have the compiler copy the last body kCount times.
template <int kCount, class F>
[[gnu::always_inline]] inline void unroll(const F& body) {
  call_with(std::make_integer_sequence<int, kCount>{}, body);
}

using simd::broadcast;
using simd::load;
using simd::store;

/// kVectors x kOutputs accumulators.
template <class S, int kVectors, int kOutputs>
struct Tile {
  typename S::Vector sum[kVectors][kOutputs];

  /// sum[v][k] += in[v] * *weight(k). kSide weights lie side by side from each kSide-th on.
  template <int kSide, class Weight>
  [[gnu::always_inline]] void multiply_add(const typename S::Vector (&in)[kVectors],
                                           const Weight& weight) {
    unroll<(kOutputs + kSide - 1) / kSide>([&](auto part) __attribute__((always_inline)) {
      constexpr int kFirst = decltype(part)::value * kSide;
      constexpr int kCount = kOutputs - kFirst < kSide ? kOutputs - kFirst : kSide;
      const auto w = S::template weights<kCount>(weight(kFirst));
      unroll<kCount>([&](auto k) __attribute__((always_inline)) {
        unroll<kVectors>([&](auto v) __attribute__((always_inline)) {
          typename S::Vector& to = sum[v][kFirst + k];
          to = S::template multiply_add<decltype(k)::value>(to, in[v], w);
        });
      });
    });
  }

  /// The same of vectors that lie x_vector apart.
  template <int kSide, class Weight>
  [[gnu::always_inline]] void multiply_add(const float* x, std::int64_t x_vector,
                                           const Weight& weight) {
    typename S::Vector in[kVectors];
    unroll<kVectors>([&](auto v)
                         __attribute__((always_inline)) { in[v] = load<S>(x + v * x_vector); });
    multiply_add<kSide>(in, weight);
  }

  /// Starts from a bias (or zero) and beta times what lies in y.
  [[gnu::always_inline]] void start(const float* bias, float beta, const float* y,
                                    std::int64_t y_vector, std::int64_t y_output) {
    unroll<kOutputs>([&](auto k) __attribute__((always_inline)) {
      const auto first = broadcast<S>(bias == nullptr ? 0.0F : bias[k]);
      unroll<kVectors>([&](auto v) __attribute__((always_inline)) { sum[v][k] = first; });
    });
    if (beta == 0) return;
    unroll<kOutputs>([&](auto k) __attribute__((always_inline)) {
      unroll<kVectors>([&](auto v) __attribute__((always_inline)) {
        sum[v][k] += beta * load<S>(y + v * y_vector + k * y_output);
      });
    });
  }

  [[gnu::always_inline]] void finish(bool with_relu, float* y, std::int64_t y_vector,
                                     std::int64_t y_output) {
    if (with_relu) {
      unroll<kOutputs>([&](auto k) __attribute__((always_inline)) {
        unroll<kVectors>([&](auto v)
                             __attribute__((always_inline)) { sum[v][k] = S::relu(sum[v][k]); });
      });
    }
    unroll<kOutputs>([&](auto k) __attribute__((always_inline)) {
      unroll<kVectors>([&](auto v) __attribute__((always_inline)) {
        store<S>(y + v * y_vector + k * y_output, sum[v][k]);
      });
    });
  }
};

}  // namespace ringlet::lanes
