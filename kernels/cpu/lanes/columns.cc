#include "kernels/cpu/lanes/columns.h"

#include <algorithm>

#include "kernels/cpu/lanes/lanes.h"
#include "kernels/cpu/lanes/positions.h"

namespace ringlet::lanes {

namespace {

constexpr std::int64_t kTerms = 288;              // of a sum that go together, at most
constexpr std::int64_t kColumnFloats = 64 << 10;  // of the columns that go together, at most

/// to[output, i] = act(bias + beta * to + sum over terms of weights[output, term] * columns).
struct ColumnsProduct {
  const float* from;  ///< [blocks][channels][height][width][16]
  std::int64_t channels, height, width;
  std::int64_t groups;
  Positions rows, cols;  ///< of `to`, of one kind
  const float* weights;  ///< [groups][outputs][channels of a group][taps]
  std::int64_t outputs;  ///< of a group
  float* to;             ///< [blocks][groups * outputs][to_height][to_width][16]
  std::int64_t to_height, to_width;
  const float* bias;
  float beta;
  bool relu;

  std::int64_t taps() const { return rows.taps() * cols.taps(); }
  std::int64_t group_channels() const { return channels / groups; }
  std::int64_t plane() const { return height * width * kLanes; }
  std::int64_t to_plane() const { return to_height * to_width * kLanes; }
  /// Channels whose terms go together.
  std::int64_t together() const {
    const Split chunks(group_channels(), std::max<std::int64_t>(1, kTerms / taps()));
    return (group_channels() + chunks.parts - 1) / chunks.parts;
  }
  /// Each row's positions, in runs that go together.
  Split runs() const {
    const std::int64_t floats = together() * taps() * kLanes;
    return {cols.count(), std::clamp<std::int64_t>(kColumnFloats / floats, 1, cols.count())};
  }
  std::int64_t longest_run() const { return (cols.count() + runs().parts - 1) / runs().parts; }
  /// A thread's scratch memory: columns and where they come from.
  std::int64_t column_floats() const { return longest_run() * together() * taps() * kLanes; }
  std::int64_t scratch_bytes() const {
    return Scratch::bytes<float>(column_floats()) +
           Scratch::bytes<std::int64_t>(longest_run() * taps());
  }
  bool empty() const { return rows.count() == 0 || cols.count() == 0; }
};

/// A run of positions in one row, of one block and one group.
struct Run {
  std::int64_t block, group, row, begin, size;
};

void multiply_run(const KernelTable& kernels, const ColumnsProduct& p, const Run& run,
                  const std::int64_t* offsets, float* columns) {
  const std::int64_t channels = p.group_channels(), taps = p.taps();
  const std::int64_t first_output = run.group * p.outputs;
  const float* const from = p.from + (run.block * p.channels + run.group * channels) * p.plane();
  float* const to = p.to + (run.block * p.groups * p.outputs + first_output) * p.to_plane() +
                    (p.rows.position(run.row) * p.to_width + p.cols.position(run.begin)) * kLanes;
  const Split tiles(p.outputs, kernels.rows_outputs);
  const SampleGroups samples(kernels, run.size * kLanes, kernels.dense_vectors);
  const std::int64_t to_position = p.cols.step() * kLanes;
  DenseArguments a{};
  a.x_step = kLanes;
  a.w_output = channels * taps;
  a.w_step = 1;
  a.runs = 1;
  a.y_vector = samples.stride(to_position);
  a.y_output = p.to_plane();
  a.columns = kAllColumns;
  for (std::int64_t c = 0; c < channels; c += p.together()) {
    const std::int64_t count = std::min(p.together(), channels - c);
    a.steps = count * taps;
    for (std::int64_t position = 0; position < run.size; ++position) {
      kernels.copy_columns({from + c * p.plane(), p.plane(), offsets + position * taps, taps, 0,
                            a.steps, columns + position * a.steps * kLanes});
    }
    a.x_vector = samples.stride(a.steps * kLanes);
    a.beta = c == 0 ? p.beta : 1.0F;
    a.relu = p.relu && c + count == channels;
    for (std::int64_t tile = 0; tile < tiles.parts; ++tile) {
      const std::int64_t output = tiles.begin(tile);
      a.w = p.weights + (first_output + output) * a.w_output + c * taps;
      a.bias = p.bias == nullptr || c > 0 ? nullptr : p.bias + first_output + output;
      for (std::int64_t group = 0; group < samples.count; ++group) {
        a.x = columns + samples.offset(group, a.steps * kLanes);
        a.y = to + output * p.to_plane() + samples.offset(group, to_position);
        kernels.dense_rows(a, samples.vectors(group), tiles.size(tile));
      }
    }
  }
}

/// `scratch`: scratch_bytes() for each thread.
void multiply(CpuStream& stream, const ColumnsProduct& p, std::int64_t blocks, std::byte* scratch) {
  if (p.empty()) return;
  const KernelTable& kernels = kernels_for(stream.isa());
  const Split runs = p.runs();
  const std::int64_t per_block = p.rows.count() * runs.parts;
  const std::int64_t all = blocks * p.groups * per_block;
  stream.parallel_for(all, [&](std::int64_t begin, std::int64_t end, int thread) {
    auto* const columns = reinterpret_cast<float*>(scratch + thread * p.scratch_bytes());
    auto* const offsets = reinterpret_cast<std::int64_t*>(reinterpret_cast<std::byte*>(columns) +
                                                          Scratch::bytes<float>(p.column_floats()));
    for (std::int64_t item = begin; item < end; ++item) {
      const std::int64_t part = item % runs.parts;
      const Run run{item / per_block / p.groups, item / per_block % p.groups,
                    item % per_block / runs.parts, runs.begin(part), runs.size(part)};
      list_sources(p.rows, p.cols, p.width, run.row, run.begin, run.size, offsets);
      multiply_run(kernels, p, run, offsets, columns);
    }
  });
}

/// Positions of dx that no tap reaches: dx = beta * dx.
void scale_positions(CpuStream& stream, const ColumnsProduct& p, std::int64_t planes) {
  stream.parallel_for(planes * p.rows.count(), [&](std::int64_t begin, std::int64_t end, int) {
    for (std::int64_t item = begin; item < end; ++item) {
      const std::int64_t row = p.rows.position(item % p.rows.count());
      float* const to = p.to + item / p.rows.count() * p.to_plane() + row * p.to_width * kLanes;
      for (std::int64_t j = 0; j < p.cols.count(); ++j) {
        float* const y = to + p.cols.position(j) * kLanes;
        for (std::int64_t lane = 0; lane < kLanes; ++lane) {
          y[lane] = p.beta == 0 ? 0.0F : p.beta * y[lane];
        }
      }
    }
  });
}

/// packed [groups][channels of a group][outputs of a group][taps of the kind] of w, for the data
/// gradient.
void pack_turned(CpuStream& stream, const ColumnsProduct& p, const ConstView& w, float* packed) {
  const std::int64_t inputs = w.shape()[1], outputs = p.group_channels();
  const std::int64_t kernel = w.shape()[2] * w.shape()[3];
  stream.parallel_for(p.groups * inputs, [&](std::int64_t begin, std::int64_t end, int) {
    for (std::int64_t item = begin; item < end; ++item) {
      float* to = packed + item * outputs * p.taps();
      const float* from = w.f32() + (item / inputs * outputs * inputs + item % inputs) * kernel;
      for (std::int64_t o = 0; o < outputs; ++o, from += inputs * kernel) {
        for (std::int64_t r = 0; r < p.rows.taps(); ++r) {
          for (std::int64_t c = 0; c < p.cols.taps(); ++c) {
            *to++ = from[p.rows.tap(r) * w.shape()[3] + p.cols.tap(c)];
          }
        }
      }
    }
  });
}

}  // namespace

bool columns_suit(const Conv2dSpec& spec, const Shape& w) {
  return w[0] / spec.groups >= 32 && w[1] >= 32;
}

void columns_forward(CpuStream& stream, const Conv2dSpec& spec, ConstView x, ConstView w,
                     ConstView bias, Activation activation, View y) {
  const Axis rows = row_axis(spec, x.shape(), w.shape(), y.shape());
  const Axis cols = col_axis(spec, x.shape(), w.shape(), y.shape());
  ColumnsProduct p{};
  p.from = x.f32();
  p.channels = x.shape()[1];
  p.height = rows.in;
  p.width = cols.in;
  p.groups = spec.groups;
  p.rows = Positions::of_output(rows);
  p.cols = Positions::of_output(cols);
  p.weights = w.f32();
  p.outputs = w.shape()[0] / spec.groups;
  p.to = y.f32();
  p.to_height = rows.out;
  p.to_width = cols.out;
  p.bias = bias.absent() ? nullptr : bias.f32();
  p.relu = activation == Activation::relu;
  auto* const scratch =
      static_cast<std::byte*>(stream.workspace(stream.threads() * p.scratch_bytes()));
  multiply(stream, p, lane_blocks(x.shape()[0]), scratch);
}

namespace {

/// The positions of dx of one kind.
ColumnsProduct data_product(const Conv2dSpec& spec, const ConstView& w, const ConstView& dy,
                            float beta, const View& dx, std::int64_t kind) {
  const Axis rows = row_axis(spec, dx.shape(), w.shape(), dy.shape());
  const Axis cols = col_axis(spec, dx.shape(), w.shape(), dy.shape());
  ColumnsProduct p{};
  p.from = dy.f32();
  p.channels = dy.shape()[1];
  p.height = rows.out;
  p.width = cols.out;
  p.groups = spec.groups;
  p.rows = Positions::of_input(rows, kind / spec.stride.w);
  p.cols = Positions::of_input(cols, kind % spec.stride.w);
  p.outputs = w.shape()[1];
  p.to = dx.f32();
  p.to_height = rows.in;
  p.to_width = cols.in;
  p.beta = beta;
  return p;
}

}  // namespace

void columns_backward_data(CpuStream& stream, const Conv2dSpec& spec, ConstView w, ConstView dy,
                           float beta, View dx) {
  const std::int64_t kinds = std::int64_t{spec.stride.h} * spec.stride.w;
  const std::int64_t blocks = lane_blocks(dy.shape()[0]);
  std::int64_t bytes = 0;
  for (std::int64_t kind = 0; kind < kinds; ++kind) {
    const ColumnsProduct p = data_product(spec, w, dy, beta, dx, kind);
    if (p.taps() > 0 && !p.empty()) bytes = std::max(bytes, p.scratch_bytes());
  }
  const std::int64_t packed = Scratch::bytes<float>(w.count());
  auto* const scratch =
      static_cast<std::byte*>(stream.workspace(packed + stream.threads() * bytes));
  for (std::int64_t kind = 0; kind < kinds; ++kind) {
    ColumnsProduct p = data_product(spec, w, dy, beta, dx, kind);
    if (p.empty()) continue;
    if (p.taps() == 0) {
      scale_positions(stream, p, blocks * dx.shape()[1]);
      continue;
    }
    pack_turned(stream, p, w, reinterpret_cast<float*>(scratch));
    p.weights = reinterpret_cast<const float*>(scratch);
    multiply(stream, p, blocks, scratch + packed);
  }
}

}  // namespace ringlet::lanes
