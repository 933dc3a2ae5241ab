#include "kernels/cpu/lanes/winograd.h"

#include <algorithm>

#include "kernels/cpu/lanes/conv2d_plan.h"
#include "kernels/cpu/lanes/lanes.h"
#include "kernels/cpu/lanes/winograd_tiles.h"

namespace ringlet::lanes {

namespace {

constexpr std::int64_t kTogetherFloats = 256 << 10;  // of points, for the caches
constexpr std::int64_t kTogetherLeast = 4;           // tiles that weights are read for, at least
constexpr std::int64_t kFilterTogether = 8;  // tiles between two additions to sums in memory

/// A convolution from one tensor to another, which for the data gradient are dy and dx.
struct Correlation {
  Tiling tiling;
  const float* x;
  const float* bias;
  float beta;
  bool relu;
  float* y;

  /// Tiles that a thread takes together.
  std::int64_t together() const {
    const std::int64_t tile = kWinogradPoints * (tiling.in.channels + tiling.out.channels) * kLanes;
    const std::int64_t items = tiling.items();
    return std::clamp(kTogetherFloats / tile, std::min(kTogetherLeast, items), items);
  }
  TilePoints inputs() const { return {together(), tiling.in.channels}; }
  TilePoints outputs() const { return {together(), tiling.out.channels}; }
  /// The weights, [outputs][channels].
  PointMatrix weights() const { return {tiling.out.channels, tiling.in.channels}; }
  std::int64_t thread_floats() const { return inputs().floats() + outputs().floats(); }
};

/// out[p][item][o] = sum over c of weights[p][o][c] * in[p][item][c].
void multiply(const KernelTable& kernels, const Correlation& c, std::int64_t items,
              const float* weights, const float* in, float* out) {
  const PointMatrix matrix = c.weights();
  const TilePoints from = c.inputs(), to = c.outputs();
  const SampleGroups groups(kernels, items * kLanes, kernels.dense_vectors);
  const Split rows(matrix.rows, kernels.rows_outputs);
  DenseArguments a{};
  a.x_vector = groups.stride(from.item());
  a.x_step = kLanes;
  a.w_output = matrix.pitch;
  a.w_step = 1;
  a.steps = from.channels;
  a.runs = 1;
  a.y_vector = groups.stride(to.item());
  a.y_output = kLanes;
  a.columns = kAllColumns;
  for (std::int64_t p = 0; p < kWinogradPoints; ++p) {
    for (std::int64_t part = 0; part < rows.parts; ++part) {
      a.w = weights + p * matrix.point() + rows.begin(part) * matrix.pitch;
      for (std::int64_t group = 0; group < groups.count; ++group) {
        a.x = in + p * from.point() + groups.offset(group, from.item());
        a.y = out + p * to.point() + groups.offset(group, to.item()) + rows.begin(part) * kLanes;
        kernels.dense_rows(a, groups.vectors(group), rows.size(part));
      }
    }
  }
}

/// Tiles [first, first + items). `in` and `out` have room for their points.
void correlate_tiles(const KernelTable& kernels, const Correlation& c, std::int64_t first,
                     std::int64_t items, const float* weights, float* in, float* out) {
  std::int64_t offset = 0;
  for (std::int64_t i = 0; i < items; ++i) {
    WinogradTile tile = c.tiling.input(first + i, offset);
    tile.from = c.x + offset;
    tile.to = in + i * c.inputs().item();
    tile.point = c.inputs().point();
    kernels.input_to_points(tile);
  }
  multiply(kernels, c, items, weights, in, out);
  for (std::int64_t i = 0; i < items; ++i) {
    WinogradTile tile = c.tiling.output(first + i, offset);
    tile.from = out + i * c.outputs().item();
    tile.to = c.y + offset;
    tile.point = c.outputs().point();
    tile.bias = c.bias;
    tile.beta = c.beta;
    tile.relu = c.relu;
    kernels.points_to_output(tile);
  }
}

/// `filters` are those of the first output: their place and their stride from input to input.
/// `output` floats lie between the filters of two outputs.
void correlate(CpuStream& stream, const Correlation& c, const WinogradFilters& filters,
               std::int64_t output) {
  const KernelTable& kernels = kernels_for(stream.isa());
  const PointMatrix matrix = c.weights();
  auto* const weights =
      stream.workspace_of<float>(matrix.floats() + stream.threads() * c.thread_floats());
  stream.parallel_for(matrix.rows, [&](std::int64_t begin, std::int64_t end, int) {
    for (std::int64_t row = begin; row < end; ++row) {
      WinogradFilters a = filters;
      a.from += row * output;
      a.to = weights + row * matrix.pitch;
      a.point = matrix.point();
      a.count = matrix.pitch;
      kernels.filters_to_points(a);
    }
  });
  const std::int64_t items = c.tiling.items(), together = c.together();
  const std::int64_t parts = (items + together - 1) / together;
  stream.parallel_for(parts, [&](std::int64_t begin, std::int64_t end, int thread) {
    float* const in = weights + matrix.floats() + thread * c.thread_floats();
    for (std::int64_t part = begin; part < end; ++part) {
      const std::int64_t first = part * together;
      correlate_tiles(kernels, c, first, std::min(together, items - first), weights, in,
                      in + c.inputs().floats());
    }
  });
}

/// The filter gradient.
struct FilterSums {
  FilterSums(const KernelTable& table, const Tiling& the_tiling)
      : kernels(table),
        tiling(the_tiling),
        columns(std::int64_t{table.dense_vectors} * table.width),
        strips((the_tiling.in.channels + columns - 1) / columns),
        together(std::min(kFilterTogether, the_tiling.items())) {}

  std::int64_t pitch() const { return strips * columns; }
  PointMatrix sums() const { return {tiling.out.channels, pitch()}; }
  /// The inputs' points, sample after sample, so that a vector holds channels.
  PointMatrix samples() const { return {together * kLanes, pitch()}; }
  TilePoints gradients() const { return {together, tiling.out.channels}; }
  TilePoints one_input() const { return {1, tiling.in.channels}; }

  const KernelTable& kernels;
  Tiling tiling;
  std::int64_t columns;  // of a strip of the sums, which the registers hold
  std::int64_t strips;
  std::int64_t together;  // tiles
};

/// Where the filter gradient's numbers lie.
struct FilterMemory {
  FilterMemory(CpuStream& stream, const FilterSums& f)
      : sums(stream.workspace_of<float>(f.sums().floats() + f.samples().floats() +
                                        f.gradients().floats() +
                                        stream.threads() * f.one_input().floats())),
        samples(sums + f.sums().floats()),
        gradients(samples + f.samples().floats()),
        inputs(gradients + f.gradients().floats()) {}

  float* sums;
  float* samples;
  float* gradients;
  float* inputs;  // of each thread's tile, before it is turned
};

/// Tile `item`, the i-th of those that go together, to its points.
void transform(const FilterSums& f, const FilterMemory& memory, const float* x, const float* dy,
               std::int64_t item, std::int64_t i, int thread) {
  std::int64_t offset = 0;
  WinogradTile tile = f.tiling.output(item, offset);
  tile.from = dy + offset;
  tile.to = memory.gradients + i * f.gradients().item();
  tile.point = f.gradients().point();
  f.kernels.gradient_to_points(tile);
  tile = f.tiling.input(item, offset);
  tile.from = x + offset;
  tile.to = memory.inputs + thread * f.one_input().floats();
  tile.point = f.one_input().point();
  f.kernels.input_to_points(tile);
  for (std::int64_t p = 0; p < kWinogradPoints; ++p) {
    f.kernels.transpose(tile.to + p * tile.point, f.tiling.in.channels,
                        memory.samples + p * f.samples().point() + i * kLanes * f.pitch(),
                        f.pitch());
  }
}

/// sums[p][o][c] = beta * sums + sum over samples of gradients * inputs, for one strip of c.
void add_products(const FilterSums& f, const FilterMemory& memory, std::int64_t items, float beta,
                  std::int64_t p, std::int64_t strip) {
  DenseArguments a{};
  a.x = memory.samples + p * f.samples().point() + strip * f.columns;
  a.x_vector = f.kernels.width;
  a.x_step = f.pitch();
  a.w_output = kLanes;
  a.w_step = 1;
  a.w_run = f.gradients().item();
  a.steps = kLanes;
  a.runs = items;
  a.y_vector = f.kernels.width;
  a.y_output = f.pitch();
  a.columns = kAllColumns;
  a.beta = beta;
  const Split rows(f.sums().rows, f.kernels.dense_outputs);
  for (std::int64_t part = 0; part < rows.parts; ++part) {
    const std::int64_t row = rows.begin(part);
    a.w = memory.gradients + p * f.gradients().point() + row * kLanes;
    a.y = memory.sums + p * f.sums().point() + row * f.pitch() + strip * f.columns;
    f.kernels.dense_lanes(a, f.kernels.dense_vectors, rows.size(part));
  }
}

}  // namespace

bool winograd_suits(const Conv2dSpec& spec, const Shape& w, const Shape& y) {
  const bool plain = spec.stride == Extent2{1, 1} && spec.dilation == Extent2{1, 1} &&
                     spec.groups == 1 && spec.padding.h <= 2 && spec.padding.w <= 2;
  // With fewer channels than that, the transforms cost more than the products.
  if (!plain || w[2] != 3 || w[3] != 3 || w[0] < 16 || w[1] < 16) return false;
  // Tiles that reach far beyond a small image multiply for nothing.
  const auto tiles = [](std::int64_t extent) { return (extent + kTileOutputs - 1) / kTileOutputs; };
  return 3 * kWinogradPoints * tiles(y[2]) * tiles(y[3]) <= 2 * 9 * y[2] * y[3];
}

void winograd_forward(CpuStream& stream, const Conv2dSpec& spec, ConstView x, ConstView w,
                      ConstView bias, Activation activation, View y) {
  const Correlation correlation{{TiledImage(x.shape()), TiledImage(y.shape()), spec.padding},
                                x.f32(),
                                bias.absent() ? nullptr : bias.f32(),
                                0,
                                activation == Activation::relu,
                                y.f32()};
  WinogradFilters filters{};
  filters.from = w.f32();
  filters.filter = 9;
  correlate(stream, correlation, filters, w.shape()[1] * 9);
}

void winograd_backward_data(CpuStream& stream, const Conv2dSpec& spec, ConstView w, ConstView dy,
                            float beta, View dx) {
  const Extent2 padding{2 - spec.padding.h, 2 - spec.padding.w};
  const Correlation correlation{{TiledImage(dy.shape()), TiledImage(dx.shape()), padding},
                                dy.f32(),
                                nullptr,
                                beta,
                                false,
                                dx.f32()};
  WinogradFilters filters{};
  filters.from = w.f32();
  filters.filter = w.shape()[1] * 9;
  filters.turned = true;
  correlate(stream, correlation, filters, 9);
}

void winograd_backward_filter(CpuStream& stream, const Conv2dSpec& spec, ConstView x, ConstView dy,
                              float beta, View dw) {
  const FilterSums f(kernels_for(stream.isa()),
                     {TiledImage(x.shape()), TiledImage(dy.shape()), spec.padding});
  const FilterMemory memory(stream, f);
  if (f.pitch() != f.tiling.in.channels) std::fill_n(memory.samples, f.samples().floats(), 0.0F);
  const std::int64_t all = f.tiling.items();
  for (std::int64_t first = 0; first < all; first += f.together) {
    const std::int64_t items = std::min(f.together, all - first);
    stream.parallel_for(items, [&](std::int64_t begin, std::int64_t end, int thread) {
      for (std::int64_t i = begin; i < end; ++i) {
        transform(f, memory, x.f32(), dy.f32(), first + i, i, thread);
      }
    });
    const std::int64_t parts = kWinogradPoints * f.strips;
    stream.parallel_for(parts, [&](std::int64_t begin, std::int64_t end, int) {
      for (std::int64_t part = begin; part < end; ++part) {
        add_products(f, memory, items, first == 0 ? 0.0F : 1.0F, part / f.strips, part % f.strips);
      }
    });
  }
  stream.parallel_for(f.sums().rows, [&](std::int64_t begin, std::int64_t end, int) {
    for (std::int64_t row = begin; row < end; ++row) {
      WinogradFilters a{};
      a.from = memory.sums + row * f.pitch();
      a.to = dw.f32() + row * dw.shape().count_per_sample();
      a.filter = 9;
      a.point = f.sums().point();
      a.count = f.tiling.in.channels;
      a.beta = beta;
      f.kernels.points_to_filters(a);
    }
  });
}

}  // namespace ringlet::lanes
