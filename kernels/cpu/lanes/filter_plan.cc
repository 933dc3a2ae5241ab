#include "kernels/cpu/lanes/filter_plan.h"

#include "kernels/cpu/lanes/kernels_for.h"

namespace ringlet::lanes {

FilterPlan::FilterPlan(const Conv2dSpec& conv_spec, ConstView input, const Shape& y, View filter)
    : spec(conv_spec),
      x(input),
      dw(filter),
      rows(row_axis(conv_spec, input.shape(), filter.shape(), y)),
      cols(col_axis(conv_spec, input.shape(), filter.shape(), y)) {}

namespace {

bool is_padded(const FilterPlan& plan) { return plan.rows.padding > 0 || plan.cols.padding > 0; }

std::int64_t padded_plane(const FilterPlan& plan) {
  return padded_extent(plan.rows) * padded_extent(plan.cols) * kLanes;
}

/// Offsets of the taps (c, p, q) of one group, in the order of the weights.
void list_taps(const FilterPlan& plan, std::int64_t* taps) {
  const std::int64_t row = plan.rows.dilation * padded_extent(plan.cols) * kLanes;
  const std::int64_t col = plan.cols.dilation * kLanes;
  for (std::int64_t c = 0; c < plan.dw.shape()[1]; ++c) {
    for (std::int64_t p = 0; p < plan.rows.kernel; ++p) {
      for (std::int64_t q = 0; q < plan.cols.kernel; ++q) {
        *taps++ = c * padded_plane(plan) + p * row + q * col;
      }
    }
  }
}

/// Everything but the tile.
FilterArguments arguments_of(const FilterPlan& plan) {
  const std::int64_t channels = plan.x.shape()[1];
  FilterArguments a{};
  a.x_block = channels * padded_plane(plan);
  a.x_row = plan.rows.stride * padded_extent(plan.cols) * kLanes;
  a.x_col = plan.cols.stride * kLanes;
  a.dy_channel = plan.height * plan.width * kLanes;
  a.dy_block = plan.dw.shape()[0] * a.dy_channel;
  a.blocks = lane_blocks(plan.x.shape()[0]);
  a.height = plan.height;
  a.width = plan.width;
  a.dw_output = plan.dw.shape().count_per_sample();
  a.beta = plan.beta;
  return a;
}

/// Items are (tile of outputs) x (tile of taps), for each group of channels.
void run_tiles(CpuStream& stream, const FilterPlan& plan, const float* x,
               const std::int64_t* taps) {
  const KernelTable& kernels = kernels_for(stream.isa());
  const FilterArguments common = arguments_of(plan);
  const std::int64_t group_channels = plan.dw.shape()[1];
  const std::int64_t group_outputs = plan.dw.shape()[0] / plan.spec.groups;
  const Split output_tiles(group_outputs, kernels.filter_outputs);
  const Split tap_tiles(common.dw_output, kernels.filter_taps);
  const std::int64_t tiles = output_tiles.parts * tap_tiles.parts;
  const auto kernel = plan.mask == nullptr ? kernels.filter : kernels.filter_pooled;
  stream.parallel_for(plan.spec.groups * tiles, [&](std::int64_t begin, std::int64_t end, int) {
    for (std::int64_t item = begin; item < end; ++item) {
      const std::int64_t group = item / tiles;
      const std::int64_t output_tile = item % tiles / tap_tiles.parts;
      const std::int64_t tap_tile = item % tap_tiles.parts;
      const std::int64_t output = group * group_outputs + output_tiles.begin(output_tile);
      FilterArguments a = common;
      a.x = x + group * group_channels * padded_plane(plan);
      a.taps = taps + tap_tiles.begin(tap_tile);
      a.dy = plan.dy + output * a.dy_channel;
      a.mask = plan.mask == nullptr ? nullptr : plan.mask + output * a.dy_channel / kLanes * 4;
      a.dw = plan.dw.f32() + output * a.dw_output + tap_tiles.begin(tap_tile);
      kernel(a, output_tiles.size(output_tile), tap_tiles.size(tap_tile));
    }
  });
}

}  // namespace

void run_filter(CpuStream& stream, const FilterPlan& plan) {
  const std::int64_t planes = lane_blocks(plan.x.shape()[0]) * plan.x.shape()[1];
  const std::int64_t padded = is_padded(plan) ? planes * padded_plane(plan) : 0;
  const std::int64_t taps = plan.dw.shape().count_per_sample();
  Scratch scratch(stream, Scratch::bytes<float>(padded) + Scratch::bytes<std::int64_t>(taps));
  const float* x = plan.x.f32();
  if (is_padded(plan)) {
    auto* const copy = scratch.take<float>(padded);
    pad_planes(stream, x, planes, plan.rows, plan.cols, copy);
    x = copy;
  }
  auto* const offsets = scratch.take<std::int64_t>(taps);
  list_taps(plan, offsets);
  run_tiles(stream, plan, x, offsets);
}

}  // namespace ringlet::lanes
