// The losses of kernels/pointwise_loss.h, said as plainly as possible. predictions and targets
// [N, numbers]; T is float or double.
#pragma once

#include <cmath>
#include <cstdint>
#include <vector>

#include "kernels/pointwise_loss.h"

namespace ringlet::test::reference {

inline constexpr PointwiseLoss kPointwiseLosses[] = {PointwiseLoss::squared_error,
                                                     PointwiseLoss::binary_cross_entropy};

template <class T>
T number_loss(PointwiseLoss kind, T p, T t) {
  if (kind == PointwiseLoss::squared_error) return (p - t) * (p - t);
  const T probability = 1 / (1 + std::exp(-p));
  return -(t * std::log(probability) + (1 - t) * std::log(1 - probability));
}

/// The sum over the samples of the mean over the numbers.
template <class T>
T pointwise_loss_forward(PointwiseLoss kind, std::int64_t numbers, const std::vector<T>& p,
                         const std::vector<T>& t) {
  T loss = 0;
  for (std::size_t i = 0; i < p.size(); ++i) loss += number_loss(kind, p[i], t[i]) / numbers;
  return loss;
}

template <class T>
std::vector<T> pointwise_loss_backward(PointwiseLoss kind, std::int64_t numbers,
                                       const std::vector<T>& p, const std::vector<T>& t, T dloss) {
  std::vector<T> dp(p.size());
  for (std::size_t i = 0; i < p.size(); ++i) {
    const T slope =
        kind == PointwiseLoss::squared_error ? 2 * (p[i] - t[i]) : 1 / (1 + std::exp(-p[i])) - t[i];
    dp[i] = dloss / numbers * slope;
  }
  return dp;
}

}  // namespace ringlet::test::reference
