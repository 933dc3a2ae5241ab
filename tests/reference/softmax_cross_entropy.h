// The loss of kernels/softmax_cross_entropy.h, said as plainly as possible. logits [N, classes],
// labels [N]; T is float or double.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <vector>

namespace ringlet::test::reference {

/// Row by row, with the largest logit subtracted.
template <class T>
std::vector<T> softmax(std::int64_t classes, std::vector<T> z) {
  for (auto row = z.begin(); row != z.end(); row += classes) {
    const T largest = *std::max_element(row, row + classes);
    T sum = 0;
    for (auto value = row; value != row + classes; ++value) sum += std::exp(*value - largest);
    for (auto value = row; value != row + classes; ++value) {
      *value = std::exp(*value - largest) / sum;
    }
  }
  return z;
}

/// The sum over the samples.
template <class T>
T softmax_cross_entropy_forward(std::int64_t classes, const std::vector<T>& logits,
                                const std::vector<std::int32_t>& labels, T smoothing = 0,
                                std::vector<T> weights = {}) {
  T loss = 0;
  weights.resize(classes, 1);
  for (std::size_t n = 0; n < labels.size(); ++n) {
    const T* z = logits.data() + n * classes;
    const T largest = *std::max_element(z, z + classes);
    T sum = 0;
    for (std::int64_t k = 0; k < classes; ++k) sum += std::exp(z[k] - largest);
    const T log_sum = std::log(sum) + largest;
    loss += (1 - smoothing) * weights[labels[n]] * (log_sum - z[labels[n]]);
    for (std::int64_t k = 0; k < classes; ++k) {
      loss += smoothing / classes * weights[k] * (log_sum - z[k]);
    }
  }
  return loss;
}

template <class T>
std::vector<T> softmax_cross_entropy_backward(std::int64_t classes, const std::vector<T>& logits,
                                              const std::vector<std::int32_t>& labels, T dloss,
                                              T smoothing = 0, std::vector<T> weights = {}) {
  std::vector<T> dz = softmax(classes, logits);
  weights.resize(classes, 1);
  for (std::size_t n = 0; n < labels.size(); ++n) {
    std::vector<T> wanted;
    for (const T weight : weights) wanted.push_back(smoothing / classes * weight);
    wanted[labels[n]] += (1 - smoothing) * weights[labels[n]];
    T all = 0;
    for (const T share : wanted) all += share;
    for (std::int64_t k = 0; k < classes; ++k) {
      T& gradient = dz[n * classes + k];
      gradient = dloss * (all * gradient - wanted[k]);
    }
  }
  return dz;
}

}  // namespace ringlet::test::reference
