// The operations that go over elements, said as plainly as possible: those of elementwise.h,
// normalize.h, dropout.h, sgd.h, adamw.h, ema.h and l2_norm.h in kernels/. T is float or double.
#pragma once

#include <cmath>
#include <cstddef>
#include <cstdint>
#include <vector>

#include "base/philox.h"
#include "kernels/decay_table.h"
#include "kernels/dropout.h"
#include "kernels/normalize.h"
#include "kernels/sgd.h"

namespace ringlet::test::reference {

template <class T>
std::vector<T> relu_forward(std::vector<T> x) {
  for (T& value : x) value = value < 0 ? 0 : value;
  return x;
}

template <class T>
std::vector<T> relu_backward(const std::vector<T>& y, const std::vector<T>& dy) {
  std::vector<T> dx(y.size());
  for (std::size_t i = 0; i < y.size(); ++i) dx[i] = y[i] > 0 ? dy[i] : 0;
  return dx;
}

template <class T>
std::vector<T> sigmoid_forward(std::vector<T> x) {
  for (T& value : x) value = 1 / (1 + std::exp(-value));
  return x;
}

template <class T>
std::vector<T> sigmoid_backward(const std::vector<T>& y, const std::vector<T>& dy) {
  std::vector<T> dx(y.size());
  for (std::size_t i = 0; i < y.size(); ++i) dx[i] = dy[i] * y[i] * (1 - y[i]);
  return dx;
}

template <class T>
std::vector<T> tanh_forward(std::vector<T> x) {
  for (T& value : x) value = std::tanh(value);
  return x;
}

template <class T>
std::vector<T> tanh_backward(const std::vector<T>& y, const std::vector<T>& dy) {
  std::vector<T> dx(y.size());
  for (std::size_t i = 0; i < y.size(); ++i) dx[i] = dy[i] * (1 - y[i] * y[i]);
  return dx;
}

/// Rows [N, features] of x, as the columns from `first` on of y's rows.
template <class T>
void concat_forward(std::int64_t features, const std::vector<T>& x, std::int64_t first,
                    std::int64_t all, std::vector<T>& y) {
  for (std::size_t i = 0; i < x.size(); ++i) {
    y[i / features * all + first + i % features] = x[i];
  }
}

/// The gradient of x: those columns of dy's rows.
template <class T>
std::vector<T> concat_backward(std::int64_t features, std::int64_t samples, std::int64_t first,
                               std::int64_t all, const std::vector<T>& dy) {
  std::vector<T> dx(samples * features);
  for (std::size_t i = 0; i < dx.size(); ++i) {
    dx[i] = dy[i / features * all + first + i % features];
  }
  return dx;
}

template <class T>
std::vector<T> normalize_forward(const Normalization& normalization,
                                 const std::vector<std::uint8_t>& x) {
  std::vector<T> y;
  for (const std::uint8_t value : x) {
    y.push_back((static_cast<T>(value) / 255 - static_cast<T>(normalization.mean)) /
                static_cast<T>(normalization.deviation));
  }
  return y;
}

/// x is [n, features]. Backward is forward applied to dy: the mask does not depend on x.
template <class T>
std::vector<T> dropout(const DropoutSpec& spec, std::int64_t features, std::vector<T> x) {
  for (std::size_t i = 0; i < x.size(); ++i) {
    const std::uint64_t n = i / features, f = i % features;
    const PhiloxBlock words = philox(spec.key, f / 4, spec.first_sample + n);
    const bool kept = uniform01(words[f % 4]) >= spec.probability;
    x[i] = kept ? x[i] / (T{1} - static_cast<T>(spec.probability)) : T{0};
  }
  return x;
}

template <class T>
void sgd_update(const SgdSpec& spec, T learning_rate, T momentum, std::vector<T>& value,
                const std::vector<T>& gradient, std::vector<T>& velocity, T scale = 1,
                const std::vector<std::uint8_t>& decays = {}) {
  for (std::size_t i = 0; i < value.size(); ++i) {
    const bool decay = decays.empty() || decays[i / kDecayBlock] != 0;
    const T g = scale * gradient[i] + (decay ? static_cast<T>(spec.weight_decay) * value[i] : 0);
    velocity[i] = momentum * velocity[i] + g;
    value[i] -= learning_rate * (spec.nesterov ? g + momentum * velocity[i] : velocity[i]);
  }
}

template <class T>
void ema_update(T decay, const std::vector<T>& value, std::vector<T>& mean) {
  for (std::size_t i = 0; i < mean.size(); ++i) mean[i] = decay * mean[i] + (1 - decay) * value[i];
}

struct AdamWHyper {
  double learning_rate = 1e-3, beta1 = 0.9, beta2 = 0.999, epsilon = 1e-8, weight_decay = 1e-2;
};

/// Step `t`, from 1, in the words of torch.optim.AdamW.
template <class T>
void adamw_update(const AdamWHyper& hyper, int t, std::vector<T>& value,
                  const std::vector<T>& gradient, std::vector<T>& mean, std::vector<T>& square,
                  T scale = 1, const std::vector<std::uint8_t>& decays = {}) {
  const T lr = hyper.learning_rate, beta1 = hyper.beta1, beta2 = hyper.beta2;
  const T bias1 = 1 - std::pow(beta1, t), bias2 = 1 - std::pow(beta2, t);
  for (std::size_t i = 0; i < value.size(); ++i) {
    const T g = scale * gradient[i];
    if (decays.empty() || decays[i / kDecayBlock] != 0) value[i] *= 1 - lr * hyper.weight_decay;
    mean[i] += (1 - beta1) * (g - mean[i]);
    square[i] = beta2 * square[i] + (1 - beta2) * g * g;
    value[i] -= lr / bias1 * mean[i] / (std::sqrt(square[i]) / std::sqrt(bias2) + hyper.epsilon);
  }
}

template <class T>
T l2_norm(const std::vector<T>& x) {
  T total = 0;
  for (const T value : x) total += value * value;
  return std::sqrt(total);
}

}  // namespace ringlet::test::reference
