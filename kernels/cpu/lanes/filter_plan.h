// The filter gradient, cut into tiles of outputs x taps (filter.h).
#pragma once

#include <cstdint>

#include "kernels/conv2d.h"
#include "kernels/cpu/cpu_device.h"
#include "kernels/cpu/lanes/conv2d_plan.h"

namespace ringlet::lanes {

struct FilterPlan {
  /// `dy` is the shape of the convolution's result, or of the part of it that has a gradient.
  FilterPlan(const Conv2dSpec& spec, ConstView x, const Shape& dy, View dw);

  ConstView x;
  View dw;
  std::int64_t groups;
  Axis rows, cols;
};

/// Ready to run: images padded, taps listed.
struct FilterTiles {
  const KernelTable* kernels;
  Split outputs;  ///< tiles of one group's output channels
  Split taps;     ///< tiles of (c, p, q)
  std::int64_t groups;
  std::int64_t x_group;  ///< floats from one group's channels to the next
  const std::int64_t* offsets;
  FilterArguments common;  ///< everything but the tile and dy

  std::int64_t output(std::int64_t group, std::int64_t tile) const {
    return group * outputs.total + outputs.begin(tile);
  }
};

std::int64_t filter_scratch_bytes(const FilterPlan& plan);
FilterTiles prepare_filter(CpuStream& stream, const FilterPlan& plan, Scratch& scratch);

/// Gradients of a tile's output channels: dy[block][output][height][width][16].
struct TileGradient {
  const float* dy;
  std::int64_t dy_block;  ///< floats from one block to the next
  std::int64_t first;     ///< block of x that dy begins with
  std::int64_t blocks;
  float beta;
};
void filter_tile(const FilterTiles& tiles, std::int64_t group, std::int64_t output_tile,
                 std::int64_t tap_tile, const TileGradient& gradient);

}  // namespace ringlet::lanes
