#include "kernels/linear.h"

#include <algorithm>

#include "kernels/cpu/lanes/conv2d_plan.h"
#include "kernels/cpu/lanes/lanes.h"

namespace ringlet::lanes {

namespace {

/// y (samples in vectors) = w x, tile by tile; `first(k)` sets what depends on the first output k.
template <class First>
void run_samples(CpuStream& stream, const ConstView& x, const View& y, const DenseArguments& common,
                 void (*kernel)(const DenseArguments&, int, int), int largest, const First& first) {
  const KernelTable& kernels = kernels_for(stream.isa());
  const SampleGroups samples(kernels, x.shape()[0], kernels.dense_vectors);
  const Split tiles(y.shape()[1], largest);
  const std::int64_t x_block = x.shape()[1] * kLanes;
  const std::int64_t y_block = y.shape()[1] * kLanes;
  stream.parallel_for(samples.count * tiles.parts, [&](std::int64_t begin, std::int64_t end, int) {
    for (std::int64_t item = begin; item < end; ++item) {
      const std::int64_t group = item / tiles.parts;
      const std::int64_t tile = item % tiles.parts;
      DenseArguments a = common;
      a.x = x.f32() + samples.offset(group, x_block);
      a.x_vector = samples.stride(x_block);
      a.y = y.f32() + samples.offset(group, y_block) + tiles.begin(tile) * kLanes;
      a.y_vector = samples.stride(y_block);
      first(a, tiles.begin(tile));
      kernel(a, samples.vectors(group), tiles.size(tile));
    }
  });
}

}  // namespace

void linear_forward(CpuStream& stream, ConstView x, ConstView w, ConstView bias,
                    Activation activation, View y) {
  const KernelTable& kernels = kernels_for(stream.isa());
  const std::int64_t inputs = x.shape()[1];
  DenseArguments a{};
  a.x_step = kLanes;
  a.w_output = inputs;
  a.w_step = 1;
  a.steps = inputs;
  a.runs = 1;
  a.y_output = kLanes;
  a.columns = kAllColumns;
  a.relu = activation == Activation::relu;
  run_samples(stream, x, y, a, kernels.dense_rows, kernels.rows_outputs,
              [&](DenseArguments& tile, std::int64_t output) {
                tile.w = w.f32() + output * inputs;
                tile.bias = bias.absent() ? nullptr : bias.f32() + output;
              });
}

void linear_backward_data(CpuStream& stream, ConstView w, ConstView dy, float beta, View dx) {
  const KernelTable& kernels = kernels_for(stream.isa());
  DenseArguments a{};
  a.x_step = kLanes;
  a.w_output = 1;
  a.w_step = dx.shape()[1];
  a.steps = dy.shape()[1];
  a.runs = 1;
  a.y_output = kLanes;
  a.columns = kAllColumns;
  a.beta = beta;
  run_samples(stream, dy, dx, a, kernels.dense_packed, kernels.dense_outputs,
              [&](DenseArguments& tile, std::int64_t input) { tile.w = w.f32() + input; });
}

namespace {

/// x [blocks][I][16] -> [16 blocks][pitch]: samples become rows, and a vector holds inputs.
void transpose_blocks(CpuStream& stream, const ConstView& x, std::int64_t pitch, float* rows) {
  const KernelTable& kernels = kernels_for(stream.isa());
  const std::int64_t inputs = x.shape()[1];
  stream.parallel_for(lane_blocks(x.shape()[0]), [&](std::int64_t begin, std::int64_t end, int) {
    for (std::int64_t block = begin; block < end; ++block) {
      float* const to = rows + block * kLanes * pitch;
      kernels.transpose(x.f32() + block * inputs * kLanes, inputs, to, pitch);
      for (std::int64_t lane = 0; lane < kLanes; ++lane) {
        std::fill(to + lane * pitch + inputs, to + (lane + 1) * pitch, 0.0F);
      }
    }
  });
}

}  // namespace

void linear_backward_weight(CpuStream& stream, ConstView x, ConstView dy, float beta, View dw) {
  const KernelTable& kernels = kernels_for(stream.isa());
  const std::int64_t inputs = x.shape()[1];
  const std::int64_t outputs = dy.shape()[1];
  const std::int64_t columns = std::int64_t{kernels.dense_vectors} * kernels.width;
  const std::int64_t strips = (inputs + columns - 1) / columns;
  const std::int64_t blocks = lane_blocks(x.shape()[0]);
  auto* const rows = stream.workspace_of<float>(blocks * kLanes * strips * columns);
  transpose_blocks(stream, x, strips * columns, rows);
  const Split tiles(outputs, kernels.dense_outputs);
  DenseArguments common{};
  common.x_vector = kernels.width;
  common.x_step = strips * columns;
  common.w_output = kLanes;
  common.w_step = 1;
  common.w_run = outputs * kLanes;
  common.steps = kLanes;
  common.runs = blocks;
  common.y_vector = kernels.width;
  common.y_output = inputs;
  common.beta = beta;
  stream.parallel_for(strips * tiles.parts, [&](std::int64_t begin, std::int64_t end, int) {
    for (std::int64_t item = begin; item < end; ++item) {
      const std::int64_t input = item / tiles.parts * columns;
      const std::int64_t output = tiles.begin(item % tiles.parts);
      DenseArguments a = common;
      a.x = rows + input;
      a.w = dy.f32() + output * kLanes;
      a.y = dw.f32() + output * inputs + input;
      a.columns = inputs - input;
      kernels.dense_lanes(a, kernels.dense_vectors, tiles.size(item % tiles.parts));
    }
  });
}

}  // namespace ringlet::lanes
