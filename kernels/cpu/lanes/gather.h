// Convolution by gathering: a tile of outputs of one pixel is summed in registers, over all
// channels and all taps that lie inside the image. The tile is two vectors of samples by up to
// thirteen outputs (AVX-512), so a step costs 2 loads and 13 broadcasts for 26 multiply-adds, for
// any kernel, stride, padding and dilation.
#pragma once

#include "kernels/cpu/lanes/arguments.h"
#include "kernels/cpu/lanes/tile.h"

namespace ringlet::lanes {

/// Channels [begin, end) of pixel (i, j).
template <class S, int kVectors, int kOutputs>
[[gnu::always_inline]] inline void gather_pixel(const GatherArguments& a, std::int64_t begin,
                                                std::int64_t end, std::int64_t i, std::int64_t j) {
  // NOLINTNEXTLINE(cppcoreguidelines-pro-type-member-init): start() writes all of it
  Tile<S, kVectors, kOutputs> tile;
  float* const y = a.y + (i * a.width + j) * 16;
  const bool first = begin == 0;
  tile.start(first ? a.bias : nullptr, first ? a.beta : 1.0F, y, a.y_vector, a.y_channel);
  const Tap* const row_end = a.rows.taps + a.rows.begin[i + 1];
  const Tap* const col_end = a.cols.taps + a.cols.begin[j + 1];
  for (std::int64_t c = begin; c < end; ++c) {
    const float* const x = a.x + c * a.x_channel;
    const float* const w = a.w + c * a.kernel * kOutputs;
    for (const Tap* row = a.rows.taps + a.rows.begin[i]; row != row_end; ++row) {
      const float* const x_row = x + row->offset;
      const float* const w_row = w + row->weight * kOutputs;
      for (const Tap* col = a.cols.taps + a.cols.begin[j]; col != col_end; ++col) {
        const float* const weights = w_row + col->weight * kOutputs;
        tile.template multiply_add<S::kWeights>(
            x_row + col->offset,
            a.x_vector, [weights](int k) __attribute__((always_inline)) { return weights + k; });
      }
    }
  }
  tile.finish(a.relu && end == a.channels, y, a.y_vector, a.y_channel);
}

template <class S, int kVectors, int kOutputs>
void gather(const GatherArguments& arguments) {
  const GatherArguments a = arguments;
  for (std::int64_t begin = 0; begin < a.channels; begin += a.chunk) {
    const std::int64_t end = begin + a.chunk < a.channels ? begin + a.chunk : a.channels;
    for (std::int64_t i = 0; i < a.height; ++i) {
      for (std::int64_t j = 0; j < a.width; ++j) {
        gather_pixel<S, kVectors, kOutputs>(a, begin, end, i, j);
      }
    }
  }
}

}  // namespace ringlet::lanes
