// The rectifier of kernels/relu.h, said as plainly as possible; T is float or double.
#pragma once

#include <cstddef>
#include <vector>

namespace ringlet::reference {

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

}  // namespace ringlet::reference
