#include "kernels/conv2d_relu_avg_pool2d.h"

#include <algorithm>

#include "kernels/cpu/lanes/conv2d_plan.h"
#include "kernels/cpu/lanes/filter_plan.h"
#include "kernels/cpu/lanes/gather_plan.h"
#include "kernels/cpu/lanes/lanes.h"

namespace ringlet::lanes {

namespace {

/// Numbers of the mask for one pooled element: one for each pixel of the window.
constexpr std::int64_t kBitsPerWindow = 4;

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

/// The inputs of the forward pass, beside the tile.
struct Forward {
  int groups = 0;
  const float* x = nullptr;  ///< padded
  std::int64_t x_channels = 0;
  const float* packed = nullptr;
  const float* bias = nullptr;
  View y;
  std::uint16_t* mask = nullptr;
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
  /// Floats of a plane when it is spread over the convolution's pixels, as far as they were pooled.
  std::int64_t spread_plane() const { return 4 * plane(); }
};

PooledGradient pooled_gradient(const ConstView& dy, const ConstView& mask) {
  return {dy.f32(), static_cast<const std::uint16_t*>(mask.data()), dy.shape()[1], dy.shape()[2],
          dy.shape()[3]};
}

/// The shape of the convolution's result without what pooling drops.
Shape spread_shape(const Shape& pooled) {
  return {pooled[0], pooled[1], 2 * pooled[2], 2 * pooled[3]};
}

/// Channels [begin, end) of blocks [first, first + count).
void spread(const KernelTable& kernels, const PooledGradient& g, std::int64_t first,
            std::int64_t count, std::int64_t begin, std::int64_t end, float* to) {
  UnpoolArguments a{};
  a.height = g.height;
  a.width = g.width;
  a.dy_width = 2 * g.width;
  for (std::int64_t block = first; block < first + count; ++block) {
    for (std::int64_t channel = begin; channel < end; ++channel, to += g.spread_plane()) {
      const std::int64_t plane = block * g.outputs + channel;
      a.pooled = g.dy + plane * g.plane();
      a.mask = g.mask + plane * g.height * g.width * kBitsPerWindow;
      a.dy = to;
      kernels.unpool(a);
    }
  }
}

}  // namespace

void conv2d_relu_avg_pool2d_backward_data(CpuStream& stream, const Conv2dSpec& spec, ConstView w,
                                          ConstView dy, ConstView mask, float beta, View dx) {
  const KernelTable& kernels = kernels_for(stream.isa());
  const PooledGradient gradient = pooled_gradient(dy, mask);
  const Shape used = spread_shape(dy.shape());
  GatherPlan plan(backward_weights(spec, w), used, dx.shape());
  plan.rows = row_axis(spec, dx.shape(), w.shape(), used);
  plan.cols = col_axis(spec, dx.shape(), w.shape(), used);
  plan.beta = beta;
  // As many blocks at a time as a tile of the convolution takes: they stay in the L2 cache.
  const std::int64_t blocks = lane_blocks(used[0]);
  const std::int64_t span = std::max<std::int64_t>(1, kernels.gather_vectors * kernels.width / 16);
  const std::int64_t spread_floats = span * used[1] * gradient.spread_plane();
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
      spread(kernels, gradient, first, count, 0, used[1], from);
      gather_blocks(tiles, count, from, dx.f32() + first * dx_block);
    }
  });
}

namespace {

/// Where the filter's gradient and the bias's go.
struct FilterTarget {
  float beta_dw;
  float* db;  ///< or null
  float beta_db;
};

/// Spread gradients of this size stay in the L2 cache beside the images.
constexpr std::int64_t kSpreadFloats = 64 << 10;

/// All taps of one tile of outputs: spreads some blocks' gradients and uses them for every tap.
void filter_outputs(const FilterTiles& tiles, const PooledGradient& g, const FilterTarget& target,
                    std::int64_t blocks, std::int64_t item, float* spread_dy) {
  const std::int64_t group = item / tiles.outputs.parts;
  const std::int64_t tile = item % tiles.outputs.parts;
  const std::int64_t begin = tiles.output(group, tile);
  const std::int64_t outputs = tiles.outputs.size(tile);
  const std::int64_t block = outputs * g.spread_plane();
  const std::int64_t step = std::max<std::int64_t>(1, kSpreadFloats / block);
  for (std::int64_t first = 0; first < std::max<std::int64_t>(blocks, 1); first += step) {
    const std::int64_t count = std::min(step, blocks - first);
    spread(*tiles.kernels, g, first, count, begin, begin + outputs, spread_dy);
    const TileGradient part{spread_dy, block, first, count, first == 0 ? target.beta_dw : 1.0F};
    for (std::int64_t taps = 0; taps < tiles.taps.parts; ++taps) {
      filter_tile(tiles, group, tile, taps, part);
    }
    for (std::int64_t o = 0; o < outputs && target.db != nullptr; ++o) {
      const float sum =
          tiles.kernels->sum(spread_dy + o * g.spread_plane(), count, block, g.spread_plane());
      const float beta = first == 0 ? target.beta_db : 1.0F;
      float& db = target.db[begin + o];
      db = beta == 0 ? sum : beta * db + sum;
    }
  }
}

}  // namespace

void conv2d_relu_avg_pool2d_backward_filter(CpuStream& stream, const Conv2dSpec& spec, ConstView x,
                                            ConstView dy, ConstView mask, float beta_dw, View dw,
                                            float beta_db, View db) {
  const FilterPlan plan(spec, x, spread_shape(dy.shape()), dw);
  const PooledGradient gradient = pooled_gradient(dy, mask);
  const FilterTarget target{beta_dw, db.absent() ? nullptr : db.f32(), beta_db};
  const std::int64_t blocks = lane_blocks(x.shape()[0]);
  const std::int64_t largest =
      kernels_for(stream.isa()).filter_outputs * gradient.spread_plane();  // floats of a block
  const std::int64_t spread_floats = std::max(largest, kSpreadFloats);
  Scratch scratch(
      stream, filter_scratch_bytes(plan) + Scratch::bytes<float>(stream.threads() * spread_floats));
  const FilterTiles tiles = prepare_filter(stream, plan, scratch);
  auto* const spreads = scratch.take<float>(stream.threads() * spread_floats);
  const std::int64_t items = tiles.groups * tiles.outputs.parts;
  stream.parallel_for(items, [&](std::int64_t begin, std::int64_t end, int thread) {
    for (std::int64_t item = begin; item < end; ++item) {
      filter_outputs(tiles, gradient, target, blocks, item, spreads + thread * spread_floats);
    }
  });
}

}  // namespace ringlet::lanes
