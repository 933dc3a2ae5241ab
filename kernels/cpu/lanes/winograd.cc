#include "kernels/cpu/lanes/winograd.h"

#include <algorithm>

#include "kernels/cpu/lanes/conv2d_plan.h"
#include "kernels/cpu/lanes/lanes.h"
#include "kernels/cpu/lanes/winograd_tiles.h"

namespace ringlet::lanes {

namespace {

constexpr std::int64_t kTogetherFloats = 256 << 10;  // of points, for the caches
constexpr std::int64_t kTogetherLeast = 4;           // tiles that weights are read for, at least
constexpr std::int64_t kFilterTogether = 8;       // tiles between two additions to sums in memory
constexpr std::int64_t kSpans = 16;               // of tiles, at most
constexpr std::int64_t kSpansFloats = 640 << 10;  // of all spans' sums, for the caches

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

/// Where the points of the tiles lie that go together.
struct CorrelationPoints {
  CorrelationPoints(const Correlation& c, float* memory)
      : in(memory), out(memory + c.inputs().floats()) {}
  float* in;
  float* out;
};

/// out[p][item][o] = sum over c of weights[p][o][c] * in[p][item][c], for points [begin, end).
void multiply(const KernelTable& kernels, const Correlation& c, std::int64_t items,
              const float* weights, const CorrelationPoints& points, std::int64_t begin,
              std::int64_t end) {
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
  for (std::int64_t p = begin; p < end; ++p) {
    for (std::int64_t part = 0; part < rows.parts; ++part) {
      a.w = weights + p * matrix.point() + rows.begin(part) * matrix.pitch;
      for (std::int64_t group = 0; group < groups.count; ++group) {
        a.x = points.in + p * from.point() + groups.offset(group, from.item());
        a.y = points.out + p * to.point() + groups.offset(group, to.item()) +
              rows.begin(part) * kLanes;
        kernels.dense_rows(a, groups.vectors(group), rows.size(part));
      }
    }
  }
}

/// Tiles [first, first + items). `for_each(n, body)` calls body(begin, end) on parts of [0, n).
template <class ForEach>
void correlate_tiles(const KernelTable& kernels, const Correlation& c, std::int64_t first,
                     std::int64_t items, const float* weights, const CorrelationPoints& points,
                     ForEach for_each) {
  for_each(items, [&](std::int64_t begin, std::int64_t end) {
    for (std::int64_t i = begin; i < end; ++i) {
      std::int64_t offset = 0;
      WinogradTile tile = c.tiling.input(first + i, offset);
      tile.from = c.x + offset;
      tile.to = points.in + i * c.inputs().item();
      tile.point = c.inputs().point();
      kernels.input_to_points(tile);
    }
  });
  for_each(kWinogradPoints, [&](std::int64_t begin, std::int64_t end) {
    multiply(kernels, c, items, weights, points, begin, end);
  });
  for_each(items, [&](std::int64_t begin, std::int64_t end) {
    for (std::int64_t i = begin; i < end; ++i) {
      std::int64_t offset = 0;
      WinogradTile tile = c.tiling.output(first + i, offset);
      tile.from = points.out + i * c.outputs().item();
      tile.to = c.y + offset;
      tile.point = c.outputs().point();
      tile.bias = c.bias;
      tile.beta = c.beta;
      tile.relu = c.relu;
      kernels.points_to_output(tile);
    }
  });
}

/// `filters` are those of the first output: their address and their stride from input to input.
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
  const auto add_part = [&](std::int64_t part, int slot, auto for_each) {
    const std::int64_t first = part * together;
    const CorrelationPoints points(c, weights + matrix.floats() + slot * c.thread_floats());
    correlate_tiles(kernels, c, first, std::min(together, items - first), weights, points,
                    for_each);
  };
  // A thread takes whole parts where that keeps all threads busy; else all go through each part.
  if (parts % stream.threads() == 0 || parts >= 4 * stream.threads()) {
    stream.parallel_for(parts, [&](std::int64_t begin, std::int64_t end, int thread) {
      for (std::int64_t part = begin; part < end; ++part) {
        add_part(part, thread, [](std::int64_t n, auto body) { body(0, n); });
      }
    });
  } else {
    for (std::int64_t part = 0; part < parts; ++part) {
      add_part(part, 0, [&](std::int64_t n, auto body) {
        stream.parallel_for(n,
                            [&](std::int64_t begin, std::int64_t end, int) { body(begin, end); });
      });
    }
  }
}

/// The filter gradient. The tiles are cut into spans, each with sums of its own, which are added up
/// in the end. How many spans there are depends on shapes alone, so the threads change no bit.
struct FilterSums {
  FilterSums(const KernelTable& table, const Tiling& the_tiling)
      : kernels(table),
        tiling(the_tiling),
        columns(std::int64_t{table.dense_vectors} * table.width),
        strips((the_tiling.in.channels + columns - 1) / columns),
        together(std::clamp<std::int64_t>(the_tiling.items(), 1, kFilterTogether)),
        spans(std::clamp<std::int64_t>(kSpansFloats / sums().floats(), 1,
                                       std::min(kSpans, tiling.items() / together))) {}

  std::int64_t pitch() const { return strips * columns; }
  PointMatrix sums() const { return {tiling.out.channels, pitch()}; }
  /// The inputs' points, sample after sample, so that a vector holds channels.
  PointMatrix samples() const { return {together * kLanes, pitch()}; }
  TilePoints gradients() const { return {together, tiling.out.channels}; }
  TilePoints one_input() const { return {1, tiling.in.channels}; }
  std::int64_t first_tile(std::int64_t span) const { return tiling.items() * span / spans; }

  const KernelTable& kernels;
  Tiling tiling;
  std::int64_t columns;  // of a strip of the sums, which the registers hold
  std::int64_t strips;
  std::int64_t together;  // tiles
  std::int64_t spans;
};

/// Where the filter gradient's numbers lie: sums of each span, points of each span in work, and an
/// input of each thread, before it is turned.
struct FilterMemory {
  FilterMemory(CpuStream& stream, const FilterSums& the_sums, int spans_at_once)
      : f(the_sums),
        sums(stream.workspace_of<float>(f.spans * f.sums().floats() +
                                        spans_at_once * points_floats() +
                                        stream.threads() * f.one_input().floats())),
        points(sums + f.spans * f.sums().floats()),
        inputs(points + spans_at_once * points_floats()) {
    // Columns beyond the channels are multiplied, too.
    if (f.pitch() != f.tiling.in.channels) std::fill(points, inputs, 0.0F);
  }

  std::int64_t points_floats() const { return f.samples().floats() + f.gradients().floats(); }
  float* sums_of(std::int64_t span) const { return sums + span * f.sums().floats(); }
  float* samples(int slot) const { return points + slot * points_floats(); }
  float* gradients(int slot) const { return samples(slot) + f.samples().floats(); }
  float* input(int thread) const { return inputs + thread * f.one_input().floats(); }

  const FilterSums& f;
  float* sums;
  float* points;
  float* inputs;
};

/// One span: its tensors, its sums, the points of its tiles that go together.
struct FilterSpan {
  const FilterSums& f;
  const FilterMemory& memory;
  const float* x;
  const float* dy;
  float* sums;
  float* samples;
  float* gradients;

  /// Tile `item`, the i-th of those that go together, to its points.
  void transform(std::int64_t item, std::int64_t i, int thread) const {
    std::int64_t offset = 0;
    WinogradTile tile = f.tiling.output(item, offset);
    tile.from = dy + offset;
    tile.to = gradients + i * f.gradients().item();
    tile.point = f.gradients().point();
    f.kernels.gradient_to_points(tile);
    tile = f.tiling.input(item, offset);
    tile.from = x + offset;
    tile.to = memory.input(thread);
    tile.point = f.one_input().point();
    f.kernels.input_to_points(tile);
    for (std::int64_t p = 0; p < kWinogradPoints; ++p) {
      f.kernels.transpose(tile.to + p * tile.point, f.tiling.in.channels,
                          samples + p * f.samples().point() + i * kLanes * f.pitch(), f.pitch());
    }
  }

  /// sums[p][o][c] = beta * sums + sum over samples of gradients * inputs, for one strip of c.
  void add_products(std::int64_t items, float beta, std::int64_t p, std::int64_t strip) const {
    DenseArguments a{};
    a.x = samples + p * f.samples().point() + strip * f.columns;
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
      a.w = gradients + p * f.gradients().point() + row * kLanes;
      a.y = sums + p * f.sums().point() + row * f.pitch() + strip * f.columns;
      f.kernels.dense_lanes(a, f.kernels.dense_vectors, rows.size(part));
    }
  }

  /// Tiles [first, last). `for_each(n, body)` calls body(begin, end, thread) on parts of [0, n).
  template <class ForEach>
  void add(std::int64_t first, std::int64_t last, ForEach for_each) const {
    float beta = 0;
    for (std::int64_t at = first; at < last; at += f.together, beta = 1) {
      const std::int64_t items = std::min(f.together, last - at);
      for_each(items, [&](std::int64_t begin, std::int64_t end, int thread) {
        for (std::int64_t i = begin; i < end; ++i) transform(at + i, i, thread);
      });
      for_each(kWinogradPoints * f.strips, [&](std::int64_t begin, std::int64_t end, int) {
        for (std::int64_t part = begin; part < end; ++part) {
          add_products(items, beta, part / f.strips, part % f.strips);
        }
      });
    }
  }
};

/// Adds the sums of the other spans to the first one's, for one row of each point.
void merge_spans(const FilterMemory& memory, std::int64_t row) {
  const PointMatrix matrix = memory.f.sums();
  for (std::int64_t p = 0; p < kWinogradPoints; ++p) {
    float* const to = memory.sums + p * matrix.point() + row * matrix.pitch;
    for (std::int64_t span = 1; span < memory.f.spans; ++span) {
      const float* const from = to + span * matrix.floats();
      for (std::int64_t i = 0; i < matrix.pitch; ++i) to[i] += from[i];
    }
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
  // A thread takes whole spans where there is one for each; else all threads go through each span.
  const bool apart = f.spans >= stream.threads();
  const FilterMemory memory(stream, f, apart ? stream.threads() : 1);
  const auto add_span = [&](std::int64_t span, int slot, auto for_each) {
    const FilterSpan a{f,
                       memory,
                       x.f32(),
                       dy.f32(),
                       memory.sums_of(span),
                       memory.samples(slot),
                       memory.gradients(slot)};
    a.add(f.first_tile(span), f.first_tile(span + 1), for_each);
  };
  if (apart) {
    stream.parallel_for(f.spans, [&](std::int64_t begin, std::int64_t end, int thread) {
      for (std::int64_t span = begin; span < end; ++span) {
        add_span(span, thread, [&](std::int64_t n, auto body) { body(0, n, thread); });
      }
    });
  } else {
    for (std::int64_t span = 0; span < f.spans; ++span) {
      add_span(span, 0, [&](std::int64_t n, auto body) { stream.parallel_for(n, body); });
    }
  }
  stream.parallel_for(f.sums().rows, [&](std::int64_t begin, std::int64_t end, int) {
    for (std::int64_t row = begin; row < end; ++row) {
      merge_spans(memory, row);
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
