// The fully connected layer of kernels/linear.h, said as plainly as possible. x [n, inputs],
// w [outputs, inputs], y [n, outputs]; T is float or double.
#pragma once

#include <cstdint>
#include <vector>

namespace ringlet::test::reference {

struct LinearSize {
  std::int64_t n = 0, inputs = 0, outputs = 0;
};

/// Calls f(x_index, w_index, y_index) for every product that the layer adds to y.
template <class F>
void for_each_product(const LinearSize& size, F f) {
  for (std::int64_t n = 0; n < size.n; ++n)
    for (std::int64_t o = 0; o < size.outputs; ++o)
      for (std::int64_t i = 0; i < size.inputs; ++i)
        f(n * size.inputs + i, o * size.inputs + i, n * size.outputs + o);
}

/// y, before bias and activation.
template <class T>
std::vector<T> linear_forward(const LinearSize& size, const std::vector<T>& x,
                              const std::vector<T>& w) {
  std::vector<T> y(size.n * size.outputs);
  for_each_product(size, [&](auto xi, auto wi, auto yi) { y[yi] += x[xi] * w[wi]; });
  return y;
}

template <class T>
std::vector<T> linear_backward_data(const LinearSize& size, const std::vector<T>& w,
                                    const std::vector<T>& dy) {
  std::vector<T> dx(size.n * size.inputs);
  for_each_product(size, [&](auto xi, auto wi, auto yi) { dx[xi] += dy[yi] * w[wi]; });
  return dx;
}

template <class T>
std::vector<T> linear_backward_weight(const LinearSize& size, const std::vector<T>& x,
                                      const std::vector<T>& dy) {
  std::vector<T> dw(size.outputs * size.inputs);
  for_each_product(size, [&](auto xi, auto wi, auto yi) { dw[wi] += dy[yi] * x[xi]; });
  return dw;
}

}  // namespace ringlet::test::reference
