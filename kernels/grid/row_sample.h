// The kernels of kernels/row_sample.h.
#pragma once

#include <cstdint>

#include "kernels/grid/grid.h"
#include "kernels/grid/margin_softmax.h"

namespace ringlet::grid {

/// A block a row, as InverseNorm has it, so that the sum has its bits.
struct GatherRow : RowSum<GatherRow, double> {
  std::int64_t columns = 0, all = 0;
  const float* matrix = nullptr;
  const std::int32_t* rows = nullptr;
  float* gathered = nullptr;
  float* inverse = nullptr;

  RINGLET_HOST_DEVICE double share(const ThreadIndex& index) const {
    double sum = 0;
    const std::int64_t row = rows[index.block];
    for (std::int64_t i = index.thread; i < columns; i += kThreads) {
      const float value = listed(row) ? matrix[row * columns + i] : 0.0F;
      gathered[index.block * columns + i] = value;
      sum += static_cast<double>(value) * static_cast<double>(value);
    }
    return sum;
  }
  RINGLET_HOST_DEVICE void finish(const ThreadIndex& index, double sum) const {
    if (index.thread != 0) return;
    inverse[index.block] = listed(rows[index.block]) ? margin::inverse_norm(sum) : -1.0F;
  }

 private:
  RINGLET_HOST_DEVICE bool listed(std::int64_t row) const { return row >= 0 && row < all; }
};

/// Floor: reads 4 R D bytes, writes 4 R D.
template <class Grid>
void gather_rows(Grid&& grid, const ConstView& matrix, const ConstView& rows, const View& gathered,
                 const View& inverse) {
  GatherRow program;
  program.columns = matrix.shape()[1];
  program.all = matrix.shape()[0];
  program.matrix = matrix.f32();
  program.rows = rows.as<std::int32_t>();
  program.gathered = gathered.f32();
  program.inverse = inverse.f32();
  grid.run_blocks("gather_rows", rows.shape()[0], program);
}

struct FindRow {
  std::int64_t count = 0, first = 0, at = 0;
  const std::int32_t* rows = nullptr;
  const std::int32_t* labels = nullptr;
  bool joins = false;
  std::int32_t* columns = nullptr;

  RINGLET_HOST_DEVICE void operator()(std::int64_t n) const {
    // Without a sign, the -1 at the end are above all others.
    const auto wanted = static_cast<std::uint32_t>(labels[n] - first);
    std::int64_t low = 0, high = count;
    RINGLET_ROLLED
    while (low < high) {
      const std::int64_t middle = low + (high - low) / 2;
      if (static_cast<std::uint32_t>(rows[middle]) < wanted) {
        low = middle + 1;
      } else {
        high = middle;
      }
    }
    const bool found =
        labels[n] >= first && low < count && static_cast<std::uint32_t>(rows[low]) == wanted;
    if (found) {
      columns[n] = static_cast<std::int32_t>(at + low);
    } else if (!joins) {
      columns[n] = -1;
    }
  }
};

template <class Grid>
void find_rows(Grid&& grid, const ConstView& rows, const ConstView& labels, std::int64_t first,
               std::int64_t at, bool joins, const View& columns) {
  grid.for_each("find_rows", labels.count(),
                FindRow{rows.count(), first, at, rows.as<std::int32_t>(), labels.as<std::int32_t>(),
                        joins, columns.as<std::int32_t>()});
}

}  // namespace ringlet::grid
