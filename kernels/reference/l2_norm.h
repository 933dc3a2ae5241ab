// The norm of kernels/l2_norm.h, said as plainly as possible; T is float or double.
#pragma once

#include <cmath>
#include <vector>

namespace ringlet::reference {

template <class T>
T l2_norm(const std::vector<T>& x) {
  T total = 0;
  for (const T value : x) total += value * value;
  return std::sqrt(total);
}

}  // namespace ringlet::reference
