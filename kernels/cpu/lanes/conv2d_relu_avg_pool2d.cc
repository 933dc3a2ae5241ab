#include "kernels/conv2d_relu_avg_pool2d.h"

#include <algorithm>

#include "kernels/cpu/lanes/conv2d_plan.h"
#include "kernels/cpu/lanes/filter_plan.h"
#include "kernels/cpu/lanes/gather_plan.h"
#include "kernels/cpu/lanes/kernels_for.h"
#include "kernels/cpu/lanes/lanes.h"

namespace ringlet::lanes {

namespace {

/// Bytes of the mask that belong to one pooled element of sixteen lanes, in units of 16 bits.
constexpr std::int64_t kBitsPerWindow = 4;

const std::uint16_t* bits_of(const ConstView& mask) {
  return static_cast<const std::uint16_t*>(mask.data());
}

PooledArguments forward_arguments(const Axis& rows, const Axis& cols, const ConstView& w,
                                  const View& y) {
  const std::int64_t row = padded_extent(cols) * kLanes;
  PooledArguments a{};
  a.x_channel = padded_extent(rows) * row;
  a.stride_row = rows.stride * row;
  a.stride_col = cols.stride * kLanes;
  a.dilation_row = rows.dilation * row;
  a.dilation_col = cols.dilation * kLanes;
  a.channels = w.shape()[1];
  a.kernel_h = rows.kernel;
  a.kernel_w = cols.kernel;
  a.height = y.shape()[2];
  a.width = y.shape()[3];
  a.y_channel = a.height * a.width * kLanes;
  return a;
}

/// What the forward pass works on, beside the tile.
struct Forward {
  int groups;
  const float* x;  ///< padded
  std::int64_t x_channels;
  const float* packed;
  const float* bias;
  View y;
  std::uint16_t* mask;
};

/// Items are blocks x (group of channels) x (tile of outputs).
void run_forward(CpuStream& stream, const KernelTable& kernels, const Forward& f,
                 const Split& tiles, const PooledArguments& common) {
  const std::int64_t outputs = f.y.shape()[1];
  const std::int64_t taps = common.channels * common.kernel_h * common.kernel_w;
  const std::int64_t tiles_per_block = f.groups * tiles.parts;
  const std::int64_t items = lane_blocks(f.y.shape()[0]) * tiles_per_block;
  stream.parallel_for(items, [&](std::int64_t begin, std::int64_t end, int) {
    for (std::int64_t item = begin; item < end; ++item) {
      const std::int64_t block = item / tiles_per_block;
      const std::int64_t group = item % tiles_per_block / tiles.parts;
      const std::int64_t output = group * tiles.total + tiles.begin(item % tiles.parts);
      const std::int64_t plane = block * outputs + output;
      PooledArguments a = common;
      a.x = f.x + (block * f.x_channels + group * a.channels) * a.x_channel;
      a.w = f.packed + output * taps;
      a.y = f.y.f32() + plane * a.y_channel;
      a.mask = f.mask + plane * a.height * a.width * kBitsPerWindow;
      a.bias = f.bias == nullptr ? nullptr : f.bias + output;
      kernels.pooled(a, tiles.size(item % tiles.parts));
    }
  });
}

}  // namespace

void conv2d_relu_avg_pool2d_forward(CpuStream& stream, const Conv2dSpec& spec, ConstView x,
                                    ConstView w, ConstView bias, View y, View mask) {
  const KernelTable& kernels = kernels_for(stream.isa());
  const Shape result = conv2d_output_shape(spec, x.shape(), w.shape());
  const Axis rows = row_axis(spec, x.shape(), w.shape(), result);
  const Axis cols = col_axis(spec, x.shape(), w.shape(), result);
  const PooledArguments common = forward_arguments(rows, cols, w, y);
  const bool is_padded = rows.padding > 0 || cols.padding > 0;
  const std::int64_t planes = lane_blocks(x.shape()[0]) * x.shape()[1];
  const std::int64_t padded = is_padded ? planes * common.x_channel : 0;
  Scratch scratch(stream, Scratch::bytes<float>(padded) + Scratch::bytes<float>(w.count()));
  auto* const copy = scratch.take<float>(padded);
  auto* const packed = scratch.take<float>(w.count());
  if (is_padded) pad_planes(stream, x.f32(), planes, rows, cols, copy);
  const Split tiles(w.shape()[0] / spec.groups, kernels.pooled_outputs);
  pack_tiles(stream, forward_weights(spec, w), tiles, packed);
  const Forward forward{spec.groups,
                        is_padded ? copy : x.f32(),
                        x.shape()[1],
                        packed,
                        bias.absent() ? nullptr : bias.f32(),
                        y,
                        static_cast<std::uint16_t*>(mask.data())};
  run_forward(stream, kernels, forward, tiles, common);
}

namespace {

/// A pooled gradient with its mask.
struct PooledGradient {
  const float* dy;
  const std::uint16_t* mask;
  std::int64_t outputs, height, width;

  std::int64_t plane() const { return height * width * kLanes; }
  /// Floats of a block when it is spread over the convolution's pixels.
  std::int64_t spread_block() const { return outputs * 4 * plane(); }
};

/// Blocks [first, first + count) over the convolution's pixels, as far as they were pooled.
void spread(const KernelTable& kernels, const PooledGradient& g, std::int64_t first,
            std::int64_t count, float* to) {
  UnpoolArguments a{};
  a.height = g.height;
  a.width = g.width;
  a.dy_width = 2 * g.width;
  for (std::int64_t plane = 0; plane < count * g.outputs; ++plane) {
    const std::int64_t from = first * g.outputs + plane;
    a.pooled = g.dy + from * g.plane();
    a.mask = g.mask + from * g.height * g.width * kBitsPerWindow;
    a.dy = to + plane * 4 * g.plane();
    kernels.unpool(a);
  }
}

}  // namespace

void conv2d_relu_avg_pool2d_backward_data(CpuStream& stream, const Conv2dSpec& spec, ConstView w,
                                          ConstView dy, ConstView mask, float beta, View dx) {
  const KernelTable& kernels = kernels_for(stream.isa());
  const Shape& pooled = dy.shape();
  const Shape used{pooled[0], pooled[1], 2 * pooled[2], 2 * pooled[3]};
  const PooledGradient gradient{dy.f32(), bits_of(mask), pooled[1], pooled[2], pooled[3]};
  GatherPlan plan(backward_weights(spec, w), used, dx.shape());
  plan.rows = row_axis(spec, dx.shape(), w.shape(), used);
  plan.cols = col_axis(spec, dx.shape(), w.shape(), used);
  plan.beta = beta;
  // As many blocks at a time as a tile of the convolution takes: they stay in the L2 cache.
  const std::int64_t blocks = lane_blocks(pooled[0]);
  const std::int64_t span = std::max<std::int64_t>(1, kernels.gather_vectors * kernels.width / 16);
  const std::int64_t spread_floats = span * gradient.spread_block();
  Scratch scratch(
      stream, gather_scratch_bytes(plan) + Scratch::bytes<float>(stream.threads() * spread_floats));
  const GatherTiles tiles = prepare_gather(stream, plan, backward_taps, scratch);
  auto* const spreads = scratch.take<float>(stream.threads() * spread_floats);
  const std::int64_t dx_block = dx.shape().count_per_sample() * kLanes;
  const std::int64_t spans = (blocks + span - 1) / span;
  stream.parallel_for(spans, [&](std::int64_t begin, std::int64_t end, int thread) {
    for (std::int64_t item = begin; item < end; ++item) {
      const std::int64_t first = item * span;
      const std::int64_t count = std::min(span, blocks - first);
      float* const from = spreads + thread * spread_floats;
      spread(kernels, gradient, first, count, from);
      gather_blocks(tiles, count, from, dx.f32() + first * dx_block);
    }
  });
}

void conv2d_relu_avg_pool2d_backward_filter(CpuStream& stream, const Conv2dSpec& spec, ConstView x,
                                            ConstView dy, ConstView mask, float beta_dw, View dw,
                                            float beta_db, View db) {
  FilterPlan plan(spec, x, conv2d_output_shape(spec, x.shape(), dw.shape()), dw);
  plan.dy = dy.f32();
  plan.mask = bits_of(mask);
  plan.height = dy.shape()[2];
  plan.width = dy.shape()[3];
  plan.beta = beta_dw;
  run_filter(stream, plan);
  if (db.absent()) return;
  const KernelTable& kernels = kernels_for(stream.isa());
  const std::int64_t plane = plan.height * plan.width * kLanes;
  const std::int64_t outputs = dy.shape()[1];
  stream.parallel_for(outputs, [&](std::int64_t begin, std::int64_t end, int) {
    for (std::int64_t o = begin; o < end; ++o) {
      const float sum = kernels.sum_pooled(plan.dy + o * plane, plan.mask + o * plane / 4,
                                           lane_blocks(dy.shape()[0]), outputs * plane, plane);
      db.f32()[o] = beta_db == 0 ? sum : beta_db * db.f32()[o] + sum;
    }
  });
}

}  // namespace ringlet::lanes
