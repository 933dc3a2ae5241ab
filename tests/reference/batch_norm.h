// The operations of kernels/batch_norm.h, said as plainly as possible. x is [N, C] or [N, C, H, W]
// in this order; T is float or double. Empty weights and biases are 1 and 0.
#pragma once

#include <cmath>
#include <cstdint>
#include <vector>

#include "kernels/shape.h"
#include "tests/reference/bias.h"

namespace ringlet::test::reference {

template <class T>
struct Moments {
  std::vector<T> mean, squares;  ///< [C] each
  T count;                       ///< values of a channel
  T deviation(std::int64_t c, T epsilon) const { return std::sqrt(squares[c] / count + epsilon); }
};

/// Two passes: the mean, then the deviations from it.
template <class T>
Moments<T> moments_of(const Shape& shape, const std::vector<T>& x) {
  Moments<T> result{std::vector<T>(shape[1]), std::vector<T>(shape[1]),
                    static_cast<T>(shape.count()) / static_cast<T>(shape[1])};
  for (std::int64_t i = 0; i < shape.count(); ++i) {
    result.mean[channel_of(shape, i)] += x[i] / result.count;
  }
  for (std::int64_t i = 0; i < shape.count(); ++i) {
    const std::int64_t c = channel_of(shape, i);
    result.squares[c] += (x[i] - result.mean[c]) * (x[i] - result.mean[c]);
  }
  return result;
}

/// h of kernels/batch_norm.h.
template <class T>
std::vector<T> normalized(const Shape& shape, const Moments<T>& moments, T epsilon,
                          std::vector<T> x) {
  for (std::int64_t i = 0; i < shape.count(); ++i) {
    const std::int64_t c = channel_of(shape, i);
    x[i] = (x[i] - moments.mean[c]) / moments.deviation(c, epsilon);
  }
  return x;
}

template <class T>
std::vector<T> batch_norm_forward(const Shape& shape, const Moments<T>& moments, T epsilon,
                                  const std::vector<T>& weight, const std::vector<T>& bias,
                                  const std::vector<T>& x) {
  std::vector<T> y = normalized(shape, moments, epsilon, x);
  for (std::int64_t i = 0; i < shape.count(); ++i) {
    const std::int64_t c = channel_of(shape, i);
    y[i] = (weight.empty() ? T{1} : weight[c]) * y[i] + (bias.empty() ? T{0} : bias[c]);
  }
  return y;
}

template <class T>
struct BatchNormGradient {
  std::vector<T> dx, weight, bias;
};

/// `constant`: the statistics do not depend on x.
template <class T>
BatchNormGradient<T> batch_norm_backward(const Shape& shape, const Moments<T>& moments, T epsilon,
                                         const std::vector<T>& weight, const std::vector<T>& x,
                                         const std::vector<T>& dz, bool constant = false) {
  const std::vector<T> h = normalized(shape, moments, epsilon, x);
  BatchNormGradient<T> result{dz, std::vector<T>(shape[1]), std::vector<T>(shape[1])};
  for (std::int64_t i = 0; i < shape.count(); ++i) {
    result.bias[channel_of(shape, i)] += dz[i];
    result.weight[channel_of(shape, i)] += dz[i] * h[i];
  }
  for (std::int64_t i = 0; i < shape.count(); ++i) {
    const std::int64_t c = channel_of(shape, i);
    const T through = constant ? T{0} : (result.bias[c] + h[i] * result.weight[c]) / moments.count;
    result.dx[i] =
        (weight.empty() ? T{1} : weight[c]) * (dz[i] - through) / moments.deviation(c, epsilon);
  }
  return result;
}

}  // namespace ringlet::test::reference
