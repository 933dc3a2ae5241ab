// The end of a matrix product: bias and activation.
#pragma once

#include <cstdint>

#include "kernels/activation.h"
#include "kernels/elements.h"

namespace ringlet::impl {

/// to[i] = act(from[i] + bias), one channel's values; from may be to.
inline void finish_channel(const float* from, float bias, Activation activation, std::int64_t n,
                           float* to) {
  if (activation == Activation::relu) {  // NOLINT(bugprone-branch-clone): it is blind behind omp
#pragma omp simd
    for (std::int64_t i = 0; i < n; ++i) to[i] = element::relu(from[i] + bias);
  } else {
#pragma omp simd
    for (std::int64_t i = 0; i < n; ++i) to[i] = from[i] + bias;
  }
}

/// y[i] = act(y[i] + bias[i]), one sample's features; bias may be null.
inline void finish_features(const float* bias, Activation activation, std::int64_t n, float* y) {
  if (bias != nullptr) {
#pragma omp simd
    for (std::int64_t i = 0; i < n; ++i) y[i] += bias[i];
  }
  if (activation == Activation::relu) {
#pragma omp simd
    for (std::int64_t i = 0; i < n; ++i) y[i] = element::relu(y[i]);
  }
}

}  // namespace ringlet::impl
