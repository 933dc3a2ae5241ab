// The kernels of kernels/bias.h, for nchw.
#pragma once

#include <algorithm>

#include "kernels/elements.h"
#include "kernels/grid/divisor.h"
#include "kernels/grid/grid.h"
#include "kernels/grid/pack.h"
#include "kernels/tensor.h"

namespace ringlet::grid {

inline std::int64_t pixels_per_channel(const Shape& shape) {
  return shape.rank() == 4 ? shape[2] * shape[3] : 1;
}

struct BiasForward {
  Divisor pixels;
  Divisor channels;
  const float* x = nullptr;
  const float* b = nullptr;
  float* y = nullptr;

  bool takes_packs() const { return grid::takes_packs(x) && grid::takes_packs(y); }
  template <int kWidth>
  RINGLET_HOST_DEVICE void apply(std::int64_t pack) const {
    Pack<float, kWidth> values = load_pack<kWidth>(x, pack);
    for (int i = 0; i < kWidth; ++i) {
      values[i] += b[channels.remainder(pixels.quotient(kWidth * pack + i))];
    }
    store_pack(y, pack, values);
  }
};

/// Floor: reads 4 N bytes, writes 4 N.
template <class Grid>
void bias_forward(Grid&& grid, const ConstView& x, const ConstView& b, const View& y) {
  if (x.count() == 0) return;
  grid.for_each_pack("bias_forward", x.count(),
                     BiasForward{Divisor(pixels_per_channel(x.shape())), Divisor(x.shape()[1]),
                                 x.f32(), b.f32(), y.f32()});
}

/// Cuts dy, as a matrix of N rows and C * H * W columns, into parts of rows. How it is cut follows
/// from its shape alone, so the same gradients have the same sum on every GPU.
struct ColumnSumPlan {
  std::int64_t rows = 0;
  std::int64_t columns = 0;
  std::int64_t rows_per_part = 0;
  std::int64_t parts = 0;

  ColumnSumPlan(std::int64_t row_count, std::int64_t column_count)
      : rows(row_count), columns(column_count) {
    constexpr std::int64_t kEnoughThreads = std::int64_t{1} << 18;
    constexpr std::int64_t kFewestRows = 32;  // so that what is written is little beside the rows
    const std::int64_t wanted = std::max<std::int64_t>(1, kEnoughThreads / columns);
    rows_per_part = std::max(kFewestRows, (rows + wanted - 1) / wanted);
    parts = (rows + rows_per_part - 1) / rows_per_part;
  }
};

/// partial[part][column] = sum of the part's rows. A thread has a column of a part, so neighbours
/// read neighbouring addresses.
struct ColumnSums {
  ColumnSumPlan plan;
  Divisor columns;
  const float* dy = nullptr;
  double* partial = nullptr;

  RINGLET_HOST_DEVICE void operator()(std::int64_t i) const {
    const std::int64_t part = columns.quotient(i), column = i - part * plan.columns;
    const std::int64_t begin = part * plan.rows_per_part;
    const std::int64_t end = std::min(plan.rows, begin + plan.rows_per_part);
    double total = 0;
    for (std::int64_t row = begin; row < end; ++row) {
      total += static_cast<double>(dy[row * plan.columns + column]);
    }
    partial[i] = total;
  }
};

/// db[c] = beta * db[c] + sum of partial[part][c * pixels .. (c + 1) * pixels) over all parts. One
/// block for each channel.
struct ChannelTotals : BlockSum<ChannelTotals, double> {
  ColumnSumPlan plan;
  Divisor pixels;
  const double* partial = nullptr;
  float beta = 0;
  float* db = nullptr;

  /// The sum of every kThreads-th of the channel's numbers.
  RINGLET_HOST_DEVICE double share(const Place& place) const {
    double total = 0;
    for (std::int64_t i = place.thread; i < plan.parts * pixels.divisor(); i += kThreads) {
      const std::int64_t part = pixels.quotient(i), pixel = i - part * pixels.divisor();
      total += partial[part * plan.columns + place.block * pixels.divisor() + pixel];
    }
    return total;
  }
  RINGLET_HOST_DEVICE void finish(const Place& place, double sum) const {
    float& total = db[place.block];
    total = element::blend(beta, total, static_cast<float>(sum));
  }
};

/// Floor: reads 4 N bytes. Without samples, db = beta * db.
template <class Grid>
void bias_backward(Grid&& grid, const ConstView& dy, float beta, const View& db) {
  constexpr const char* kName = "bias_backward";
  const std::int64_t channels = dy.shape()[1];
  if (channels == 0) return;
  const std::int64_t pixels = std::max<std::int64_t>(1, pixels_per_channel(dy.shape()));
  const ColumnSumPlan plan(dy.count() == 0 ? 0 : dy.shape()[0], channels * pixels);
  auto* partial = grid.template workspace_of<double>(plan.parts * plan.columns);
  grid.for_each(kName, plan.parts * plan.columns,
                ColumnSums{plan, Divisor(plan.columns), dy.f32(), partial});
  grid.run_blocks(kName, channels,
                  ChannelTotals{{}, plan, Divisor(pixels), partial, beta, db.f32()});
}

}  // namespace ringlet::grid
