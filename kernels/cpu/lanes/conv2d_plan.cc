#include "kernels/cpu/lanes/conv2d_plan.h"

#include <algorithm>

namespace ringlet::lanes {

SampleGroups::SampleGroups(const KernelTable& kernels, std::int64_t samples, int vectors_per_group)
    : width(kernels.width),
      total(lane_blocks(samples) * kLanes / kernels.width),
      per_group(vectors_per_group),
      count((total + per_group - 1) / per_group) {}

int SampleGroups::vectors(std::int64_t group) const {
  return static_cast<int>(std::min(per_group, total - group * per_group));
}

std::int64_t SampleGroups::offset(std::int64_t group, std::int64_t block) const {
  const std::int64_t sample = group * per_group * width;
  return sample / kLanes * block + sample % kLanes;
}

Axis row_axis(const Conv2dSpec& spec, const Shape& x, const Shape& w, const Shape& y) {
  return {x[2], y[2], w[2], spec.stride.h, spec.padding.h, spec.dilation.h};
}

Axis col_axis(const Conv2dSpec& spec, const Shape& x, const Shape& w, const Shape& y) {
  return {x[3], y[3], w[3], spec.stride.w, spec.padding.w, spec.dilation.w};
}

std::int64_t tap_list_bytes(std::int64_t positions, std::int64_t kernel) {
  return Scratch::bytes<Tap>(positions * kernel) + Scratch::bytes<std::int32_t>(positions + 1);
}

namespace {

/// `source(position, p)` is the position that tap p multiplies, or -1.
template <class Source>
TapList make_taps(Scratch& scratch, std::int64_t positions, std::int64_t kernel, std::int64_t pitch,
                  std::int64_t weight_step, const Source& source) {
  Tap* const taps = scratch.take<Tap>(positions * kernel);
  auto* const begin = scratch.take<std::int32_t>(positions + 1);
  std::int32_t count = 0;
  for (std::int64_t position = 0; position < positions; ++position) {
    begin[position] = count;
    for (std::int64_t p = 0; p < kernel; ++p) {
      const std::int64_t from = source(position, p);
      if (from < 0) continue;
      taps[count++] = {static_cast<std::int32_t>(p * weight_step),
                       static_cast<std::int32_t>(from * pitch)};
    }
  }
  begin[positions] = count;
  return {taps, begin};
}

}  // namespace

TapList forward_taps(Scratch& scratch, const Axis& axis, std::int64_t pitch,
                     std::int64_t weight_step) {
  const auto source = [&axis](std::int64_t out, std::int64_t p) {
    const std::int64_t in = out * axis.stride - axis.padding + p * axis.dilation;
    return in < axis.in ? in : -1;
  };
  return make_taps(scratch, axis.out, axis.kernel, pitch, weight_step, source);
}

TapList backward_taps(Scratch& scratch, const Axis& axis, std::int64_t pitch,
                      std::int64_t weight_step) {
  const auto source = [&axis](std::int64_t in, std::int64_t p) {
    const std::int64_t scaled = in + axis.padding - p * axis.dilation;
    const bool read = scaled >= 0 && scaled % axis.stride == 0 && scaled / axis.stride < axis.out;
    return read ? scaled / axis.stride : -1;
  };
  return make_taps(scratch, axis.in, axis.kernel, pitch, weight_step, source);
}

GroupedWeights forward_weights(const Conv2dSpec& spec, const ConstView& w) {
  const std::int64_t kernel = w.shape()[2] * w.shape()[3];
  const std::int64_t inputs = w.shape()[1];
  const std::int64_t outputs = w.shape()[0] / spec.groups;
  return {{w.f32(), inputs * kernel, kernel, inputs, kernel},
          spec.groups,
          outputs,
          outputs * inputs * kernel};
}

GroupedWeights backward_weights(const Conv2dSpec& spec, const ConstView& w) {
  const GroupedWeights forward = forward_weights(spec, w);
  const WeightView& first = forward.first;
  return {{first.w, first.input_stride, first.output_stride, forward.outputs, first.kernel},
          spec.groups,
          first.inputs,
          forward.group_stride};
}

namespace {

/// packed [inputs][kernel][outputs] = w[output, input, tap]
void pack(const WeightView& weights, int outputs, float* packed) {
  for (std::int64_t input = 0; input < weights.inputs; ++input) {
    for (std::int64_t tap = 0; tap < weights.kernel; ++tap) {
      const float* from = weights.w + input * weights.input_stride + tap;
      for (int output = 0; output < outputs; ++output, from += weights.output_stride) {
        *packed++ = *from;
      }
    }
  }
}

}  // namespace

void pack_tiles(CpuStream& stream, const GroupedWeights& weights, const Split& tiles,
                float* packed) {
  const std::int64_t items = weights.groups * tiles.parts;
  stream.parallel_for(items, [&](std::int64_t begin, std::int64_t end, int) {
    for (std::int64_t item = begin; item < end; ++item) {
      const std::int64_t group = item / tiles.parts;
      const std::int64_t output = tiles.begin(item % tiles.parts);
      WeightView view = weights.first;
      view.w += group * weights.group_stride + output * view.output_stride;
      pack(view, tiles.size(item % tiles.parts),
           packed + (group * weights.outputs + output) * view.inputs * view.kernel);
    }
  });
}

void pad_planes(CpuStream& stream, const float* x, std::int64_t planes, const Axis& rows,
                const Axis& cols, float* padded) {
  const std::int64_t row = cols.in * kLanes;
  const std::int64_t padded_row = padded_extent(cols) * kLanes;
  const std::int64_t margin = cols.padding * kLanes;
  stream.parallel_for(planes, [=, &rows](std::int64_t begin, std::int64_t end, int) {
    for (std::int64_t plane = begin; plane < end; ++plane) {
      const float* from = x + plane * rows.in * row;
      float* to = padded + plane * padded_extent(rows) * padded_row;
      to = std::fill_n(to, rows.padding * padded_row, 0.0F);
      for (std::int64_t i = 0; i < rows.in; ++i, from += row) {
        to = std::fill_n(to, margin, 0.0F);
        to = std::copy_n(from, row, to);
        to = std::fill_n(to, margin, 0.0F);
      }
      std::fill_n(to, rows.padding * padded_row, 0.0F);
    }
  });
}

}  // namespace ringlet::lanes
