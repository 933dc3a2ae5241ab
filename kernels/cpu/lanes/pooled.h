// Convolution, ReLU and 2 x 2 average pooling in one pass: the four pixels of a window are summed
// in registers, rectified, their signs kept as bits, and only their mean is written. The
// convolution's result, four times as large and needed by nobody else, never reaches memory.
#pragma once

#include "kernels/cpu/lanes/arguments.h"
#include "kernels/cpu/lanes/tile.h"

namespace ringlet::lanes {

/// Bits and mean of a window: `bits` are the mask's four numbers, of which this vector has a part.
template <class S, int kOutputs>
[[gnu::always_inline]] inline void finish_window(const Tile<S, 4, kOutputs>& tile,
                                                 const PooledArguments& a, std::int64_t position,
                                                 int lane) {
  unroll<kOutputs>([&](auto k) __attribute__((always_inline)) {
    std::uint16_t* const bits = a.mask + (k * a.height * a.width + position) * 4;
    typename S::Vector total{};
    unroll<4>([&](auto pixel) __attribute__((always_inline)) {
      const auto positive = S::positive(tile.sum[pixel][k]);
      const unsigned lower = lane == 0 ? 0U : bits[pixel];
      bits[pixel] = static_cast<std::uint16_t>(lower | S::bits(positive) << lane);
      total = S::add_where(positive, total, tile.sum[pixel][k]);
    });
    store<S>(a.y + k * a.y_channel + position * 16 + lane, total * 0.25F);
  });
}

template <class S, int kOutputs>
[[gnu::always_inline]] inline void pooled_window(const PooledArguments& a, std::int64_t i,
                                                 std::int64_t j, int lane) {
  // NOLINTNEXTLINE(cppcoreguidelines-pro-type-member-init): start() writes all of it
  Tile<S, 4, kOutputs> tile;
  tile.start(a.bias, 0.0F, nullptr, 0, 0);
  const float* w = a.w;
  const float* const window = a.x + 2 * (i * a.stride_row + j * a.stride_col) + lane;
  for (std::int64_t c = 0; c < a.channels; ++c) {
    for (std::int64_t p = 0; p < a.kernel_h; ++p) {
      const float* upper = window + c * a.x_channel + p * a.dilation_row;
      for (std::int64_t q = 0; q < a.kernel_w; ++q, upper += a.dilation_col, w += kOutputs) {
        const float* const pixels[] = {upper, upper + a.stride_col, upper + a.stride_row,
                                       upper + a.stride_row + a.stride_col};
        typename S::Vector in[4];
        unroll<4>([&](auto v) __attribute__((always_inline)) { in[v] = load<S>(pixels[v]); });
        tile.template multiply_add<S::kWeights>(
            in, [w](int k) __attribute__((always_inline)) { return w + k; });
      }
    }
  }
  finish_window<S, kOutputs>(tile, a, i * a.width + j, lane);
}

template <class S, int kOutputs>
void pooled(const PooledArguments& arguments) {
  const PooledArguments a = arguments;
  for (std::int64_t i = 0; i < a.height; ++i) {
    for (std::int64_t j = 0; j < a.width; ++j) {
      for (int lane = 0; lane < 16; lane += S::kWidth) pooled_window<S, kOutputs>(a, i, j, lane);
    }
  }
}

/// dy[2i+a, 2j+b] = pooled[i, j] / 4 where the bit is set, 0 elsewhere.
template <class S>
void unpool(const UnpoolArguments& arguments) {
  const UnpoolArguments a = arguments;
  const float* pooled_dy = a.pooled;
  const std::uint16_t* mask = a.mask;
  for (std::int64_t i = 0; i < a.height; ++i) {
    for (std::int64_t j = 0; j < a.width; ++j, pooled_dy += 16, mask += 4) {
      float* const dy = a.dy + (2 * i * a.dy_width + 2 * j) * 16;
      for (int lane = 0; lane < 16; lane += S::kWidth) {
        const typename S::Vector quarter = load<S>(pooled_dy + lane) * 0.25F;
        unroll<4>([&](auto pixel) __attribute__((always_inline)) {
          float* const to = dy + ((pixel >> 1) * a.dy_width + (pixel & 1)) * 16 + lane;
          store<S>(to, S::keep(quarter, mask + pixel, lane));
        });
      }
    }
  }
}

}  // namespace ringlet::lanes
