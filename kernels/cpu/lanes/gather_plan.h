// A convolution as gather.h computes it, forward or as data gradient: from a tensor of one shape to
// a tensor of another, tile by tile.
#pragma once

#include <cstdint>

#include "kernels/conv2d.h"
#include "kernels/cpu/cpu_device.h"
#include "kernels/cpu/lanes/arguments.h"
#include "kernels/cpu/lanes/conv2d_plan.h"
#include "kernels/cpu/lanes/kernel_table.h"

namespace ringlet::lanes {

/// What is gathered, and in which tiles.
struct GatherPlan {
  GatherPlan(const GroupedWeights& all_weights, const Shape& from_shape, const Shape& to_shape)
      : weights(all_weights), from(from_shape), to(to_shape) {}

  GroupedWeights weights;
  Shape from, to;
  Axis rows{}, cols{};
  const float* bias = nullptr;
  float beta = 0;
  bool relu = false;
};

/// Ready to run: taps listed, weights packed.
struct GatherTiles {
  const KernelTable* kernels;
  Split tiles;  ///< outputs of one group
  std::int64_t groups;
  std::int64_t from_channels, to_channels;  ///< of all groups
  const float* packed;
  GatherArguments common;  ///< everything but the tile
};

using MakeTaps = TapList (*)(Scratch&, const Axis&, std::int64_t pitch, std::int64_t weight_step);

std::int64_t gather_scratch_bytes(const GatherPlan& plan);
GatherTiles prepare_gather(CpuStream& stream, const GatherPlan& plan, MakeTaps make_taps,
                           Scratch& scratch);

/// Tile `tile` of group `group`, for one group of samples. x and y are the tensors' first floats.
void gather_tile(const GatherTiles& g, const SampleGroups& samples, std::int64_t sample_group,
                 std::int64_t group, std::int64_t tile, const float* x, float* y);
/// All tiles of `blocks` blocks, on this thread.
void gather_blocks(const GatherTiles& g, std::int64_t blocks, const float* x, float* y);
/// All tiles of `samples` samples, split over the stream's threads.
void gather_all(CpuStream& stream, const GatherTiles& g, std::int64_t samples, const float* x,
                float* y);

}  // namespace ringlet::lanes
