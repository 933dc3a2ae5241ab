// Transposed matrices: what a change between nchw and nhwc is, a sample [C, H W] at a time. A tile
// goes through a block's shared memory, so that reads and writes are both of neighbours.
#pragma once

#include <cstdint>

#include "kernels/grid/divisor.h"
#include "kernels/grid/grid.h"
#include "kernels/grid/pack.h"
#include "kernels/tensor.h"

namespace ringlet::grid {

/// y = beta * y + x transposed, for matrices [rows, columns] one behind the other.
template <class T>
struct Transpose {
  static constexpr int kThreads = 256;
  static constexpr int kTile = 32;
  static constexpr int kPhases = 2;
  struct Shared {
    float tile[kTile][kTile + 1];  // one more: a column's elements lie in different banks
  };

  Divisor row_tiles, column_tiles;
  std::int64_t rows = 0, columns = 0;
  const T* x = nullptr;
  float beta = 0;
  T* y = nullptr;

  RINGLET_HOST_DEVICE void phase(int k, const ThreadIndex& index, Shared& shared) const {
    const std::int64_t line = column_tiles.quotient(index.block);
    const std::int64_t matrix = row_tiles.quotient(line);
    const std::int64_t top = (line - matrix * row_tiles.divisor()) * kTile;
    const std::int64_t left = (index.block - line * column_tiles.divisor()) * kTile;
    const std::int64_t first = matrix * rows * columns;
    const int lane = index.thread % kTile;
    RINGLET_ROLLED
    for (int i = index.thread / kTile; i < kTile; i += kThreads / kTile) {
      if (k == 0) {
        const std::int64_t r = top + i, c = left + lane;
        if (r < rows && c < columns) shared.tile[i][lane] = load(x[first + r * columns + c]);
      } else {
        const std::int64_t r = top + lane, c = left + i;
        if (r < rows && c < columns) put(first + c * rows + r, shared.tile[lane][i]);
      }
    }
  }

 private:
  RINGLET_HOST_DEVICE void put(std::int64_t at, float value) const {
    store(y[at], beta == 0 ? value : beta * load(y[at]) + value);
  }
};

/// Floor: reads 4 N bytes, 8 N with a beta, writes 4 N.
template <class T, class Grid>
void transpose(Grid&& grid, const char* name, std::int64_t matrices, std::int64_t rows,
               std::int64_t columns, const T* x, float beta, T* y) {
  if (matrices * rows * columns == 0) return;
  const std::int64_t row_tiles = (rows + Transpose<T>::kTile - 1) / Transpose<T>::kTile;
  const std::int64_t column_tiles = (columns + Transpose<T>::kTile - 1) / Transpose<T>::kTile;
  grid.run_blocks(
      name, matrices * row_tiles * column_tiles,
      Transpose<T>{Divisor(row_tiles), Divisor(column_tiles), rows, columns, x, beta, y});
}

/// y = beta * y + x, between nchw and nhwc: of tensors, and of filters, [O, C/groups, KH, KW] as
/// [N, C, H, W]. One of the two is in nhwc.
template <class Grid>
void change_channels(Grid&& grid, const char* name, const ConstView& x, float beta, const View& y) {
  const Shape& shape = y.shape();
  const std::int64_t channels = shape[1], pixels = shape[2] * shape[3];
  const bool to_nhwc = y.layout() == Layout::nhwc;
  reduction::visit_activations(y.dtype(), [&]<class T>(T) {
    transpose(grid, name, shape[0], to_nhwc ? channels : pixels, to_nhwc ? pixels : channels,
              x.as<T>(), beta, y.as<T>());
  });
}

}  // namespace ringlet::grid
