#include "kernels/cpu/lanes/filter_plan.h"

#include "kernels/cpu/lanes/lanes.h"

namespace ringlet::lanes {

FilterPlan::FilterPlan(const Conv2dSpec& spec, ConstView input, const Shape& dy, View filter)
    : x(input),
      dw(filter),
      groups(spec.groups),
      rows(row_axis(spec, input.shape(), filter.shape(), dy)),
      cols(col_axis(spec, input.shape(), filter.shape(), dy)) {}

namespace {

std::int64_t padded_plane(const FilterPlan& plan) {
  return padded_extent(plan.rows) * padded_extent(plan.cols) * kLanes;
}

std::int64_t planes(const FilterPlan& plan) {
  return lane_blocks(plan.x.shape()[0]) * plan.x.shape()[1];
}

/// Floats of the padded copy of x; 0 where x can be read as it is.
std::int64_t padded_count(const FilterPlan& plan) {
  const bool is_padded = plan.rows.padding > 0 || plan.cols.padding > 0;
  return is_padded ? planes(plan) * padded_plane(plan) : 0;
}

/// Offsets of the taps (c, p, q) of one group, in the order of the weights.
void list_taps(const FilterPlan& plan, std::int64_t* offsets) {
  const std::int64_t row = plan.rows.dilation * padded_extent(plan.cols) * kLanes;
  const std::int64_t col = plan.cols.dilation * kLanes;
  for (std::int64_t c = 0; c < plan.dw.shape()[1]; ++c) {
    for (std::int64_t p = 0; p < plan.rows.kernel; ++p) {
      for (std::int64_t q = 0; q < plan.cols.kernel; ++q) {
        *offsets++ = c * padded_plane(plan) + p * row + q * col;
      }
    }
  }
}

FilterArguments arguments_of(const FilterPlan& plan) {
  FilterArguments a{};
  a.x = plan.x.f32();
  a.x_block = plan.x.shape()[1] * padded_plane(plan);
  a.x_row = plan.rows.stride * padded_extent(plan.cols) * kLanes;
  a.x_col = plan.cols.stride * kLanes;
  a.height = plan.rows.out;
  a.width = plan.cols.out;
  a.dy_channel = a.height * a.width * kLanes;
  a.dw = plan.dw.f32();
  a.dw_output = plan.dw.shape().count_per_sample();
  return a;
}

}  // namespace

std::int64_t filter_scratch_bytes(const FilterPlan& plan) {
  return Scratch::bytes<float>(padded_count(plan)) +
         Scratch::bytes<std::int64_t>(plan.dw.shape().count_per_sample());
}

FilterTiles prepare_filter(CpuStream& stream, const FilterPlan& plan, Scratch& scratch) {
  const KernelTable& kernels = kernels_for(stream.isa());
  const Shape& w = plan.dw.shape();
  const std::int64_t padded = padded_count(plan);
  auto* const copy = scratch.take<float>(padded);
  auto* const offsets = scratch.take<std::int64_t>(w.count_per_sample());
  list_taps(plan, offsets);
  FilterTiles tiles{&kernels,
                    Split(w[0] / plan.groups, kernels.filter_outputs),
                    Split(w.count_per_sample(), kernels.filter_taps),
                    plan.groups,
                    w[1] * padded_plane(plan),
                    offsets,
                    arguments_of(plan)};
  if (padded > 0) {
    pad_planes(stream, plan.x.f32(), planes(plan), plan.rows, plan.cols, copy);
    tiles.common.x = copy;
  }
  return tiles;
}

void filter_tile(const FilterTiles& tiles, std::int64_t group, std::int64_t output_tile,
                 std::int64_t tap_tile, const TileGradient& gradient) {
  FilterArguments a = tiles.common;
  a.x += group * tiles.x_group + gradient.first * a.x_block;
  a.taps = tiles.offsets + tiles.taps.begin(tap_tile);
  a.dy = gradient.dy;
  a.dy_block = gradient.dy_block;
  a.blocks = gradient.blocks;
  a.dw += tiles.output(group, output_tile) * a.dw_output + tiles.taps.begin(tap_tile);
  a.beta = gradient.beta;
  tiles.kernels->filter(a, tiles.outputs.size(output_tile), tiles.taps.size(tap_tile));
}

}  // namespace ringlet::lanes
