#include "kernels/conv2d.h"

#include "kernels/cpu/lanes/bf16/bf16.h"
#include "kernels/cpu/lanes/columns.h"
#include "kernels/cpu/lanes/filter_plan.h"
#include "kernels/cpu/lanes/gather_plan.h"
#include "kernels/cpu/lanes/lanes.h"
#include "kernels/cpu/lanes/winograd.h"

namespace ringlet::lanes {

namespace {

enum class Way : std::uint8_t { gather, columns, winograd };

/// What is fastest for weights w and a result y. It depends on shapes alone, as the
/// bits do. `columns`: whether those suit.
Way way_of(const Conv2dSpec& spec, const Shape& w, const Shape& y, bool columns) {
  if (y[0] == 0) return Way::gather;
  if (winograd_suits(spec, w, y)) return Way::winograd;
  return columns ? Way::columns : Way::gather;
}

}  // namespace

void conv2d_forward(CpuStream& stream, const Conv2dSpec& spec, ConstView x, ConstView w,
                    ConstView bias, Activation activation, View y) {
  if (x.dtype() == DType::bf16)
    return bf16::conv2d_forward(stream, spec, x, w, bias, activation, y);
  switch (way_of(spec, w.shape(), y.shape(), columns_suit(spec, w.shape()))) {
    case Way::winograd:
      return winograd_forward(stream, spec, x, w, bias, activation, y);
    case Way::columns:
      return columns_forward(stream, spec, x, w, bias, activation, y);
    case Way::gather:
      break;
  }
  GatherPlan plan(forward_weights(spec, w), x.shape(), y.shape());
  plan.rows = row_axis(spec, x.shape(), w.shape(), y.shape());
  plan.cols = col_axis(spec, x.shape(), w.shape(), y.shape());
  plan.bias = bias.absent() ? nullptr : bias.f32();
  plan.relu = activation == Activation::relu;
  Scratch scratch(stream, gather_scratch_bytes(plan));
  const GatherTiles tiles = prepare_gather(stream, plan, forward_taps, scratch);
  gather_all(stream, tiles, x.shape()[0], x.f32(), y.f32());
}

void conv2d_backward_data(CpuStream& stream, const Conv2dSpec& spec, ConstView w, ConstView dy,
                          float beta, View dx) {
  if (dx.dtype() == DType::bf16) return bf16::conv2d_backward_data(stream, spec, w, dy, beta, dx);
  switch (way_of(spec, w.shape(), dy.shape(), columns_suit(spec, w.shape()))) {
    case Way::winograd:
      return winograd_backward_data(stream, spec, w, dy, beta, dx);
    case Way::columns:
      return columns_backward_data(stream, spec, w, dy, beta, dx);
    case Way::gather:
      break;
  }
  GatherPlan plan(backward_weights(spec, w), dy.shape(), dx.shape());
  plan.rows = row_axis(spec, dx.shape(), w.shape(), dy.shape());
  plan.cols = col_axis(spec, dx.shape(), w.shape(), dy.shape());
  plan.beta = beta;
  Scratch scratch(stream, gather_scratch_bytes(plan));
  const GatherTiles tiles = prepare_gather(stream, plan, backward_taps, scratch);
  gather_all(stream, tiles, dx.shape()[0], dy.f32(), dx.f32());
}

void conv2d_backward_filter(CpuStream& stream, const Conv2dSpec& spec, ConstView x, ConstView dy,
                            float beta, View dw) {
  if (x.dtype() == DType::bf16) return bf16::conv2d_backward_filter(stream, spec, x, dy, beta, dw);
  switch (way_of(spec, dw.shape(), dy.shape(), columns_suit_filter(spec, dw.shape()))) {
    case Way::winograd:
      return winograd_backward_filter(stream, spec, x, dy, beta, dw);
    case Way::columns:
      return columns_backward_filter(stream, spec, x, dy, beta, dw);
    case Way::gather:
      break;
  }
  const FilterPlan plan(spec, x, dy.shape(), dw);
  Scratch scratch(stream, filter_scratch_bytes(plan));
  const FilterTiles tiles = prepare_filter(stream, plan, scratch);
  const std::int64_t channel = tiles.common.dy_channel;
  const TileGradient all{dy.f32(), dy.shape()[1] * channel, 0, lane_blocks(x.shape()[0]), beta};
  const std::int64_t per_group = tiles.outputs.parts * tiles.taps.parts;
  stream.parallel_for(tiles.groups * per_group, [&](std::int64_t begin, std::int64_t end, int) {
    for (std::int64_t item = begin; item < end; ++item) {
      const std::int64_t group = item / per_group;
      const std::int64_t output_tile = item % per_group / tiles.taps.parts;
      TileGradient gradient = all;
      gradient.dy += tiles.output(group, output_tile) * channel;
      filter_tile(tiles, group, output_tile, item % tiles.taps.parts, gradient);
    }
  });
}

}  // namespace ringlet::lanes
