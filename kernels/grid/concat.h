// The kernels of kernels/concat.h. In memory a tensor is rows, each the channels side by side: of a
// sample in nchw, of a pixel in nhwc, of a block of samples in lanes. The CPU runs them, too.
#pragma once

#include <cstdint>

#include "kernels/elements.h"
#include "kernels/grid/divisor.h"
#include "kernels/grid/pack.h"
#include "kernels/reduction.h"
#include "kernels/tensor.h"

namespace ringlet::grid {

/// Where the elements of a part lie in the whole, by their number in the part.
struct PartOfRows {
  Divisor row;              // elements of the part's row
  std::int64_t whole = 0;   // of the whole's
  std::int64_t before = 0;  // in it, before the part

  RINGLET_HOST_DEVICE std::int64_t operator()(std::int64_t i) const {
    const std::int64_t at = row.quotient(i);
    return at * whole + before + (i - at * row.divisor());
  }
};

inline PartOfRows part_of_rows(const ConstView& part, std::int64_t first, const ConstView& whole) {
  const Shape& shape = part.shape();
  std::int64_t of_channel = part.layout() == Layout::lanes ? kLanes : 1;
  for (int i = 2; i < shape.rank() && part.layout() != Layout::nhwc; ++i) of_channel *= shape[i];
  return {Divisor(shape[1] * of_channel), whole.shape()[1] * of_channel, first * of_channel};
}

template <class T>
struct PutPart {
  PartOfRows index;
  const T* x = nullptr;
  T* y = nullptr;
  RINGLET_HOST_DEVICE void operator()(std::int64_t i) const { y[index(i)] = x[i]; }
};

template <class T>
struct TakePart {
  PartOfRows index;
  float beta = 0;
  const T* dy = nullptr;
  T* dx = nullptr;
  RINGLET_HOST_DEVICE void operator()(std::int64_t i) const {
    const float old = beta == 0 ? 0.0F : load(dx[i]);
    store(dx[i], element::blend(beta, old, load(dy[index(i)])));
  }
};

/// Floor: reads 4 N bytes, writes 4 N, of a part of N numbers.
template <class Grid>
void concat_forward(Grid&& grid, const ConstView& x, std::int64_t first, const View& y) {
  if (x.count() == 0) return;
  reduction::visit_activations(y.dtype(), [&]<class T>(T) {
    grid.for_each("concat_forward", x.storage(),
                  PutPart<T>{part_of_rows(x, first, y), x.as<T>(), y.as<T>()});
  });
}

/// Floor: reads 4 N bytes, 8 N with a beta, writes 4 N.
template <class Grid>
void concat_backward(Grid&& grid, const ConstView& dy, std::int64_t first, float beta,
                     const View& dx) {
  if (dx.count() == 0) return;
  reduction::visit_activations(dx.dtype(), [&]<class T>(T) {
    grid.for_each("concat_backward", dx.storage(),
                  TakePart<T>{part_of_rows(dx, first, dy), beta, dy.as<T>(), dx.as<T>()});
  });
}

}  // namespace ringlet::grid
