// Matrix products for the linear layers: the steps of gather.h, with numbers at fixed strides.
#pragma once

#include "kernels/cpu/lanes/arguments.h"
#include "kernels/cpu/lanes/tile.h"

namespace ringlet::lanes {

/// Stride between the weights of neighbouring outputs: known here, so that it costs no register.
inline constexpr int kAnyStride = 0;

/// The last tile of a row of y, which ends within a vector: computed in a buffer, then copied. In
/// line, since clang keeps a tile in memory that a call could see.
template <class S, int kVectors, int kOutputs>
[[gnu::always_inline]] inline void finish_partly(Tile<S, kVectors, kOutputs>& tile,
                                                 const DenseArguments& a) {
  constexpr int kColumns = kVectors * S::kWidth;
  float buffer[kOutputs * kColumns];
  tile.finish(a.relu, buffer, S::kWidth, kColumns);
  for (int k = 0; k < kOutputs; ++k) {
    for (std::int64_t column = 0; column < a.columns; ++column) {
      float& y = a.y[k * a.y_output + column];
      const float sum = buffer[k * kColumns + column];
      y = a.beta == 0 ? sum : a.beta * y + sum;
    }
  }
}

template <class S, int kVectors, int kOutputs, int kStride>
void dense(const DenseArguments& arguments) {
  const DenseArguments a = arguments;
  const bool partly = a.columns < kVectors * S::kWidth;
  // NOLINTNEXTLINE(cppcoreguidelines-pro-type-member-init): start() writes all of it
  Tile<S, kVectors, kOutputs> tile;
  tile.start(a.bias, partly ? 0.0F : a.beta, a.y, a.y_vector, a.y_output);
  const std::int64_t stride = kStride == kAnyStride ? a.w_output : kStride;
  const float* w[kOutputs];
  unroll<kOutputs>([&](auto k) __attribute__((always_inline)) { w[k] = a.w + k * stride; });
  constexpr int kSide = kStride == 1 ? S::kWeights : 1;
  const float* x = a.x;
  for (std::int64_t run = 0; run < a.runs; ++run) {
    std::int64_t offset = run * a.w_run;
    for (std::int64_t s = 0; s < a.steps; ++s, offset += a.w_step, x += a.x_step) {
      tile.template multiply_add<kSide>(
          x, a.x_vector, [&](auto k) __attribute__((always_inline)) { return w[k] + offset; });
    }
  }
  if (partly) {
    finish_partly(tile, a);
  } else {
    tile.finish(a.relu, a.y, a.y_vector, a.y_output);
  }
}

/// A square of 4 x 4 of the transposition.
template <class S>
[[gnu::always_inline]] inline void transpose_square(const float* from, float* to,
                                                    std::int64_t stride) {
  typedef float Four __attribute__((vector_size(16), aligned(4), may_alias));
  const Four a = *reinterpret_cast<const Four*>(from);
  const Four b = *reinterpret_cast<const Four*>(from + 16);
  const Four c = *reinterpret_cast<const Four*>(from + 32);
  const Four d = *reinterpret_cast<const Four*>(from + 48);
  const Four ab = __builtin_shufflevector(a, b, 0, 4, 1, 5);
  const Four cd = __builtin_shufflevector(c, d, 0, 4, 1, 5);
  const Four ab_high = __builtin_shufflevector(a, b, 2, 6, 3, 7);
  const Four cd_high = __builtin_shufflevector(c, d, 2, 6, 3, 7);
  *reinterpret_cast<Four*>(to) = __builtin_shufflevector(ab, cd, 0, 1, 4, 5);
  *reinterpret_cast<Four*>(to + stride) = __builtin_shufflevector(ab, cd, 2, 3, 6, 7);
  *reinterpret_cast<Four*>(to + 2 * stride) = __builtin_shufflevector(ab_high, cd_high, 0, 1, 4, 5);
  *reinterpret_cast<Four*>(to + 3 * stride) = __builtin_shufflevector(ab_high, cd_high, 2, 3, 6, 7);
}

/// [rows][16] -> [16][stride], columns 0 ... rows - 1.
template <class S>
void transpose(const float* x, std::int64_t rows, float* y, std::int64_t stride) {
  std::int64_t row = 0;
  for (; row + 4 <= rows; row += 4) {
    for (int lane = 0; lane < 16; lane += 4) {
      transpose_square<S>(x + row * 16 + lane, y + lane * stride + row, stride);
    }
  }
  for (; row < rows; ++row) {
    for (int lane = 0; lane < 16; ++lane) y[lane * stride + row] = x[row * 16 + lane];
  }
}

}  // namespace ringlet::lanes
