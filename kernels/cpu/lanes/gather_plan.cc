#include "kernels/cpu/lanes/gather_plan.h"

#include <algorithm>

#include "kernels/cpu/lanes/lanes.h"

namespace ringlet::lanes {

namespace {

/// Channels that are summed before the next pixel: their windows and weights should stay in half of
/// an L2 cache. (Aiming at the L1 cache loses more at the seams than it gains.)
std::int64_t channel_chunk(const KernelTable& kernels, const WeightView& weights) {
  constexpr std::int64_t kBytes = 512 << 10;
  const std::int64_t tap = 4 * (kernels.gather_vectors * kernels.width + kernels.gather_outputs);
  const std::int64_t largest = std::max<std::int64_t>(1, kBytes / (tap * weights.kernel));
  const Split chunks(weights.inputs, largest);
  return (weights.inputs + chunks.parts - 1) / chunks.parts;
}

GatherArguments arguments_of(const KernelTable& kernels, const GatherPlan& plan) {
  GatherArguments a{};
  a.x_channel = plan.from[2] * plan.from[3] * kLanes;
  a.channels = plan.weights.first.inputs;
  a.chunk = channel_chunk(kernels, plan.weights.first);
  a.kernel = plan.weights.first.kernel;
  a.y_channel = plan.to[2] * plan.to[3] * kLanes;
  a.height = plan.to[2];
  a.width = plan.to[3];
  a.bias = plan.bias;
  a.beta = plan.beta;
  a.relu = plan.relu;
  return a;
}

}  // namespace

std::int64_t gather_scratch_bytes(const GatherPlan& plan) {
  return Scratch::bytes<float>(plan.weights.count()) +
         tap_list_bytes(plan.to[2], plan.rows.kernel) +
         tap_list_bytes(plan.to[3], plan.cols.kernel);
}

GatherTiles prepare_gather(CpuStream& stream, const GatherPlan& plan, MakeTaps make_taps,
                           Scratch& scratch) {
  const KernelTable& kernels = kernels_for(stream.isa());
  GatherTiles g{&kernels,
                Split(plan.weights.outputs, kernels.gather_outputs),
                plan.weights.groups,
                plan.from[1],
                plan.to[1],
                nullptr,
                arguments_of(kernels, plan)};
  auto* const packed = scratch.take<float>(plan.weights.count());
  g.packed = packed;
  g.common.rows = make_taps(scratch, plan.rows, plan.from[3] * kLanes, plan.cols.kernel);
  g.common.cols = make_taps(scratch, plan.cols, kLanes, 1);
  pack_tiles(stream, plan.weights, g.tiles, packed);
  return g;
}

void gather_tile(const GatherTiles& g, const SampleGroups& samples, std::int64_t sample_group,
                 std::int64_t group, std::int64_t tile, const float* x, float* y) {
  GatherArguments a = g.common;
  const std::int64_t x_block = g.from_channels * a.x_channel;
  const std::int64_t y_block = g.to_channels * a.y_channel;
  const std::int64_t output = group * g.tiles.total + g.tiles.begin(tile);
  a.x = x + samples.offset(sample_group, x_block) + group * a.channels * a.x_channel;
  a.x_vector = samples.stride(x_block);
  a.w = g.packed + output * a.channels * a.kernel;
  a.y = y + samples.offset(sample_group, y_block) + output * a.y_channel;
  a.y_vector = samples.stride(y_block);
  if (a.bias != nullptr) a.bias += output;
  g.kernels->gather(a, samples.vectors(sample_group), g.tiles.size(tile));
}

void gather_blocks(const GatherTiles& g, std::int64_t blocks, const float* x, float* y) {
  const SampleGroups samples(*g.kernels, blocks * kLanes, g.kernels->gather_vectors);
  for (std::int64_t sample_group = 0; sample_group < samples.count; ++sample_group) {
    for (std::int64_t group = 0; group < g.groups; ++group) {
      for (std::int64_t tile = 0; tile < g.tiles.parts; ++tile) {
        gather_tile(g, samples, sample_group, group, tile, x, y);
      }
    }
  }
}

void gather_all(CpuStream& stream, const GatherTiles& g, std::int64_t sample_count, const float* x,
                float* y) {
  const SampleGroups samples(*g.kernels, sample_count, g.kernels->gather_vectors);
  const std::int64_t tiles = g.groups * g.tiles.parts;
  stream.parallel_for(samples.count * tiles, [&](std::int64_t begin, std::int64_t end, int) {
    for (std::int64_t item = begin; item < end; ++item) {
      const std::int64_t group = item % tiles / g.tiles.parts;
      gather_tile(g, samples, item / tiles, group, item % g.tiles.parts, x, y);
    }
  });
}

}  // namespace ringlet::lanes
