// What a convolution's position sees, copied together (columns.h): a vector register at a time.
#pragma once

#include <cstdint>

#include "kernels/cpu/lanes/arguments.h"
#include "kernels/cpu/lanes/tile.h"

namespace ringlet::lanes {

template <class S>
void copy_columns(const ColumnArguments& arguments) {
  const ColumnArguments a = arguments;
  const float* plane = a.from;
  std::int64_t tap = a.first_tap;
  float* to = a.to;
  for (std::int64_t k = 0; k < a.count; ++k, ++tap, to += 16) {
    if (tap == a.taps) {
      tap = 0;
      plane += a.plane;
    }
    const std::int64_t offset = a.offsets[tap];
    for (int lane = 0; lane < 16; lane += S::kWidth) {
      using Vector = typename S::Vector;
      store<S>(to + lane, offset < 0 ? Vector{} : load<S>(plane + offset + lane));
    }
  }
}

}  // namespace ringlet::lanes
