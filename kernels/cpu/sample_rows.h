// SampleRows: where the numbers of each sample lie, in nchw and in lanes.
#pragma once

#include <cstdint>

#include "kernels/cpu/loops.h"
#include "kernels/tensor.h"

namespace ringlet::impl {

/// Number k of sample n lies at offset(n) + k * stride().
struct SampleRows {
  std::int64_t samples;
  std::int64_t numbers;  ///< of a sample
  bool lanes;
  std::int64_t stride() const { return lanes ? kLanes : 1; }
  std::int64_t offset(std::int64_t n) const {
    return lanes ? n / kLanes * kLanes * numbers + n % kLanes : n * numbers;
  }
};

inline SampleRows rows_of(const ConstView& view) {
  return {view.shape()[0], view.shape().count_per_sample(), in_lanes(view)};
}

/// In lanes layout, the lanes beyond the batch become 0.
inline void clear_padding(const SampleRows& rows, float* values) {
  if (!rows.lanes || rows.samples == 0) return;
  float* block = values + (lane_blocks(rows.samples) - 1) * kLanes * rows.numbers;
  const std::int64_t used = rows.samples - (lane_blocks(rows.samples) - 1) * kLanes;
  for (std::int64_t k = 0; k < rows.numbers; ++k) {
    for (std::int64_t lane = used; lane < kLanes; ++lane) block[k * kLanes + lane] = 0;
  }
}

}  // namespace ringlet::impl
