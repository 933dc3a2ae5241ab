// The kernels of kernels/rows.h: a thread has a number of the activations' memory.
#pragma once

#include <algorithm>

#include "kernels/elements.h"
#include "kernels/grid/divisor.h"
#include "kernels/grid/pack.h"
#include "kernels/reduction.h"
#include "kernels/rows.h"

namespace ringlet::grid {

/// Where number i of the memory of activations [N, F] stands among the rows; below 0: in a lane
/// beyond the samples.
struct RowIndex {
  Divisor numbers;
  std::int64_t samples = 0;
  bool lanes = false;

  explicit RowIndex(const ConstView& x)
      : numbers(std::max<std::int64_t>(1, x.shape()[1])),
        samples(x.shape()[0]),
        lanes(x.layout() == Layout::lanes) {}
  RINGLET_HOST_DEVICE std::int64_t operator()(std::int64_t i) const {
    if (!lanes) return i;
    const std::int64_t line = i / kLanes;  // a number of sixteen samples
    const std::int64_t block = numbers.quotient(line), n = block * kLanes + i % kLanes;
    return n < samples ? n * numbers.divisor() + (line - block * numbers.divisor()) : -1;
  }
};

template <class T>
struct RowsForward {
  RowIndex index;
  const T* x = nullptr;
  float* rows = nullptr;

  RINGLET_HOST_DEVICE void operator()(std::int64_t i) const {
    const std::int64_t at = index(i);
    if (at >= 0) rows[at] = load(x[i]);
  }
};

template <class Grid>
void rows_forward(Grid&& grid, const ConstView& x, const View& rows) {
  reduction::visit_activations(x.dtype(), [&]<class T>(T) {
    grid.for_each("rows_forward", x.storage(), RowsForward<T>{RowIndex(x), x.as<T>(), rows.f32()});
  });
}

template <class T>
struct RowsBackward {
  RowIndex index;
  const float* drows = nullptr;
  float beta = 0;
  T* dx = nullptr;

  RINGLET_HOST_DEVICE void operator()(std::int64_t i) const {
    const std::int64_t at = index(i);
    const float old = beta == 0 ? 0.0F : load(dx[i]);
    store(dx[i], at < 0 ? 0.0F : element::blend(beta, old, drows[at]));
  }
};

template <class Grid>
void rows_backward(Grid&& grid, const ConstView& drows, float beta, const View& dx) {
  reduction::visit_activations(dx.dtype(), [&]<class T>(T) {
    grid.for_each("rows_backward", dx.storage(),
                  RowsBackward<T>{RowIndex(dx), drows.f32(), beta, dx.as<T>()});
  });
}

}  // namespace ringlet::grid
