// The normalisation of kernels/normalize.h, said as plainly as possible; T is float or double.
#pragma once

#include <cstdint>
#include <vector>

#include "kernels/normalize.h"

namespace ringlet::reference {

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

}  // namespace ringlet::reference
