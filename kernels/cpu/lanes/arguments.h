// The arguments of the vector kernels. Plain data: this header is compiled with wider instructions
// than the rest of the program, so neither it nor what it includes may hold a function.
//
// Strides and offsets are in floats. A "vector" is the instruction set's: 16, 8 or 4 samples.
#pragma once

#include <cstdint>

namespace ringlet::lanes {

/// One term of a convolution's sum along one axis.
struct Tap {
  std::int32_t weight;  ///< position in the kernel: p * KW along rows, q along columns
  std::int32_t offset;  ///< of the image's row or column that it multiplies
};

/// The taps of position i of an axis are taps[begin[i]] ... taps[begin[i + 1] - 1]. Those that
/// would fall outside the image are not there, so nothing is multiplied by padding.
struct TapList {
  const Tap* taps;
  const std::int32_t* begin;
};

/// Convolution, seen from the output: y[k, i, j] = act(init + sum over c, p, q of w * x).
/// Both forward and, with the roles of channels exchanged, the data gradient.
struct GatherArguments {
  const float* x;
  std::int64_t x_vector;   ///< to the next vector of samples
  std::int64_t x_channel;  ///< to the next channel
  const float* w;          ///< packed [channels][kernel][outputs of the tile]
  std::int64_t channels;   ///< summed over
  std::int64_t chunk;      ///< channels summed before the next pixel
  std::int64_t kernel;     ///< KH * KW
  TapList rows;
  TapList cols;
  float* y;
  std::int64_t y_vector;
  std::int64_t y_channel;
  std::int64_t height;
  std::int64_t width;
  const float* bias;  ///< of the tile's outputs, or null
  float beta;         ///< y = beta * y + ...; 0 does not read y
  bool relu;
};

/// Filter gradient of a tile: dw[o, t] = beta * dw[o, t] + sum of dy[o, i, j] * x[tap t, i, j].
/// The images of x are padded already.
struct FilterArguments {
  const float* x;
  const std::int64_t* taps;  ///< per tap of the tile: c, p, q as an offset
  std::int64_t x_block;
  std::int64_t x_row;
  std::int64_t x_col;
  const float* dy;
  std::int64_t dy_block;
  std::int64_t dy_channel;
  std::int64_t blocks;
  std::int64_t height;  ///< of dy
  std::int64_t width;
  float* dw;
  std::int64_t dw_output;
  float beta;
};

/// DenseArguments::columns where no vector reaches beyond y.
inline constexpr std::int64_t kAllColumns = std::int64_t{1} << 60;

/// Matrix product: y[k, v] = act(init + sum over s of w[k, s] * x[s, v]), v vectors. The steps s
/// are `runs` times `steps`; w may jump from one run to the next, x goes on.
struct DenseArguments {
  const float* x;
  std::int64_t x_vector;
  std::int64_t x_step;
  const float* w;
  std::int64_t w_output;
  std::int64_t w_step;
  std::int64_t w_run;
  std::int64_t steps;
  std::int64_t runs;
  float* y;
  std::int64_t y_vector;
  std::int64_t y_output;
  std::int64_t columns;  ///< valid floats from y on; what the vectors hold beyond is not written
  const float* bias;
  float beta;
  bool relu;
};

/// Convolution, ReLU and 2 x 2 average pooling of a tile of outputs; x is padded already.
struct PooledArguments {
  const float* x;
  std::int64_t x_channel;
  std::int64_t x_row;  ///< one image row
  std::int64_t stride_row;
  std::int64_t stride_col;
  std::int64_t dilation_row;
  std::int64_t dilation_col;
  const float* w;  ///< packed [channels][KH][KW][outputs of the tile]
  std::int64_t channels;
  std::int64_t kernel_h;
  std::int64_t kernel_w;
  float* y;
  std::int64_t y_channel;
  std::int64_t height;  ///< of y
  std::int64_t width;
  const float* bias;
  std::uint16_t* mask;  ///< of the tile: [outputs][height][width][2][2], sixteen lanes each
};

/// The way back through ReLU and pooling for one plane: dy[2i+a, 2j+b] = pooled[i, j] / 4 * bit.
struct UnpoolArguments {
  const float* pooled;
  const std::uint16_t* mask;
  float* dy;
  std::int64_t height;  ///< of the pooled plane
  std::int64_t width;
  std::int64_t dy_width;
};

/// Pooling of one plane: forward from x [height][width][16] to y [out_height][out_width][16], and
/// backward from dy to dx of the same shapes.
struct PoolArguments {
  const float* from;
  float* to;
  std::int32_t* winner;  ///< of maximum pooling
  std::int64_t height, width, out_height, out_width;
  std::int64_t kernel_h, kernel_w, stride_h, stride_w, pad_h, pad_w;
  bool count_include_pad;
  float beta;  ///< dx = beta * dx + ...
};

/// Terms (channel, tap) of one position, one after the other: to[count][16].
struct ColumnArguments {
  const float* from;            ///< the first channel's plane
  std::int64_t plane;           ///< floats from one channel to the next
  const std::int64_t* offsets;  ///< of the taps in a plane; below 0: padding, zeros
  std::int64_t taps;
  std::int64_t first_tap;  ///< that of the first term
  std::int64_t count;      ///< terms
  float* to;
};

/// A tile of Winograd's convolution, for all channels: a piece of an image, and its points
/// (winograd_transforms.h). One is read, the other written.
struct WinogradTile {
  const float* from;
  float* to;
  std::int64_t image_channel;  ///< floats from one channel to the next; points have 16
  std::int64_t image_row;
  std::int64_t point;          ///< floats from one point to the next
  std::int64_t height, width;  ///< pixels that exist: the first of them is where the image begins
  std::int64_t top, left;      ///< those of the tile before them. They and those behind count as 0
  std::int64_t channels;
  const float* bias;  ///< of the channels, or null
  float beta;         ///< to = beta * to + ...; 0 does not read it
  bool relu;
};

/// Filters of 3 x 3 and their points. One is read, the other written.
struct WinogradFilters {
  const float* from;
  float* to;
  std::int64_t filter;  ///< floats from one filter's nine weights to the next; points have 1
  std::int64_t point;   ///< floats from one point to the next
  std::int64_t count;   ///< filters; points are read in whole vectors, beyond it as well
  bool turned;          ///< by 180 degrees, as the data gradient wants them
  float beta;           ///< to = beta * to + ...; 0 does not read it
};

/// What a chain of multiply-adds has done.
struct FmaChainResult {
  double flops;
  float sum;  ///< to be used, so that the compiler keeps the loop
};

}  // namespace ringlet::lanes
