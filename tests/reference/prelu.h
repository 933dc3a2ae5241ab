// PReLU of kernels/prelu.h, said as plainly as possible. x is [N, C] or [N, C, H, W] in this order,
// a one slope for each channel or for all; T is float or double.
#pragma once

#include <vector>

#include "tests/reference/bias.h"

namespace ringlet::test::reference {

template <class T>
std::vector<T> prelu_forward(const Shape& shape, std::vector<T> x, const std::vector<T>& a) {
  for (std::int64_t i = 0; i < shape.count(); ++i) {
    const T slope = a[a.size() == 1 ? 0 : channel_of(shape, i)];
    x[i] = x[i] > 0 ? x[i] : slope * x[i];
  }
  return x;
}

template <class T>
std::vector<T> prelu_backward_data(const Shape& shape, const std::vector<T>& x,
                                   const std::vector<T>& a, std::vector<T> dy) {
  for (std::int64_t i = 0; i < shape.count(); ++i) {
    if (!(x[i] > 0)) dy[i] *= a[a.size() == 1 ? 0 : channel_of(shape, i)];
  }
  return dy;
}

/// Of `slopes` numbers, the channels' or one.
template <class T>
std::vector<T> prelu_backward_slope(const Shape& shape, const std::vector<T>& x,
                                    const std::vector<T>& dy, std::int64_t slopes) {
  std::vector<T> da(slopes);
  for (std::int64_t i = 0; i < shape.count(); ++i) {
    if (!(x[i] > 0)) da[slopes == 1 ? 0 : channel_of(shape, i)] += dy[i] * x[i];
  }
  return da;
}

}  // namespace ringlet::test::reference
