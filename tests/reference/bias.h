// The bias of kernels/bias.h, said as plainly as possible. x is [N, C] or [N, C, H, W] in this
// order; T is float or double.
#pragma once

#include <cstdint>
#include <vector>

#include "kernels/shape.h"

namespace ringlet::test::reference {

/// The channel of element i.
inline std::int64_t channel_of(const Shape& shape, std::int64_t i) {
  return i / (shape.count_per_sample() / shape[1]) % shape[1];
}

template <class T>
std::vector<T> bias_forward(const Shape& shape, std::vector<T> x, const std::vector<T>& b) {
  for (std::int64_t i = 0; i < shape.count(); ++i) x[i] += b[channel_of(shape, i)];
  return x;
}

template <class T>
std::vector<T> bias_backward(const Shape& shape, const std::vector<T>& dy) {
  std::vector<T> db(shape[1]);
  for (std::int64_t i = 0; i < shape.count(); ++i) db[channel_of(shape, i)] += dy[i];
  return db;
}

}  // namespace ringlet::test::reference
