#include <algorithm>

#include "kernels/cpu/lanes/columns.h"
#include "kernels/cpu/lanes/lanes.h"
#include "kernels/cpu/lanes/positions.h"

namespace ringlet::lanes {

namespace {

constexpr std::int64_t kPixels = 16;  // positions of an image that go together, at most
constexpr std::int64_t kStrips = 4;   // that dy is read for

/// The filter gradient as a product of dy with turned columns: samples in rows, so that a vector
/// holds terms (c, tap). A strip of terms is what the registers hold.
struct TurnedColumns {
  TurnedColumns(const KernelTable& table, const Conv2dSpec& spec, const ConstView& x_view,
                const ConstView& dy_view, const View& dw_view)
      : kernels(table),
        x(x_view),
        dy(dy_view),
        dw(dw_view),
        rows(Positions::of_output(row_axis(spec, x.shape(), dw.shape(), dy.shape()))),
        cols(Positions::of_output(col_axis(spec, x.shape(), dw.shape(), dy.shape()))),
        columns(std::int64_t{table.dense_vectors} * table.width),
        groups(spec.groups) {}

  std::int64_t taps() const { return rows.taps() * cols.taps(); }
  std::int64_t terms() const { return dw.shape().count_per_sample(); }
  std::int64_t blocks() const { return lane_blocks(x.shape()[0]); }
  std::int64_t inputs() const { return dw.shape()[1]; }  // of a group
  std::int64_t outputs() const { return dw.shape()[0] / groups; }
  std::int64_t plane() const { return x.shape()[2] * x.shape()[3] * kLanes; }
  std::int64_t pixels() const { return rows.count() * cols.count(); }
  std::int64_t strip_floats() const { return kPixels * kLanes * columns; }

  const KernelTable& kernels;
  ConstView x, dy;
  View dw;
  Positions rows, cols;
  std::int64_t columns;  // of a strip
  std::int64_t groups;
};

/// A thread's scratch memory.
struct TurnedMemory {
  explicit TurnedMemory(const TurnedColumns& t)
      : panel_bytes(Scratch::bytes<float>(kStrips * t.strip_floats())),
        samples_bytes(Scratch::bytes<float>(t.columns * kLanes)),
        offsets_bytes(Scratch::bytes<std::int64_t>(kPixels * t.taps())) {}
  std::int64_t bytes() const { return panel_bytes + samples_bytes + offsets_bytes; }
  void lay_out(std::byte* begin) {
    panel = reinterpret_cast<float*>(begin);
    samples = reinterpret_cast<float*>(begin + panel_bytes);
    offsets = reinterpret_cast<std::int64_t*>(begin + panel_bytes + samples_bytes);
  }

  std::int64_t panel_bytes, samples_bytes, offsets_bytes;
  float* panel = nullptr;    // [strips][pixels][16][columns]
  float* samples = nullptr;  // [columns][16] of one pixel
  std::int64_t* offsets = nullptr;
};

/// Terms of the filter gradient that go together, and pixels.
struct Part {
  std::int64_t group, first_term, term_count;
  std::int64_t pixel, pixel_count;

  std::int64_t strips(const TurnedColumns& t) const {
    return (term_count + t.columns - 1) / t.columns;
  }
};

/// One strip of one pixel's terms, from `term` on, turned: to [16][columns].
void turn_strip(const TurnedColumns& t, const float* image, std::int64_t term,
                const std::int64_t* offsets, float* samples, float* to) {
  const std::int64_t count = std::min(t.columns, t.terms() - term);
  t.kernels.copy_columns({image + term / t.taps() * t.plane(), t.plane(), offsets, t.taps(),
                          term % t.taps(), count, samples});
  std::fill_n(samples + count * kLanes, (t.columns - count) * kLanes, 0.0F);
  t.kernels.transpose(samples, t.columns, to, t.columns);
}

void turn(const TurnedColumns& t, const Part& part, std::int64_t block,
          const TurnedMemory& memory) {
  const std::int64_t first_channel = block * t.x.shape()[1] + part.group * t.inputs();
  const float* const image = t.x.f32() + first_channel * t.plane();
  for (std::int64_t strip = 0; strip < part.strips(t); ++strip) {
    for (std::int64_t pixel = 0; pixel < part.pixel_count; ++pixel) {
      turn_strip(t, image, part.first_term + strip * t.columns, memory.offsets + pixel * t.taps(),
                 memory.samples,
                 memory.panel + strip * t.strip_floats() + pixel * kLanes * t.columns);
    }
  }
}

/// dw = beta * dw + dy times the turned columns.
void add_products(const TurnedColumns& t, const Part& part, std::int64_t block,
                  const TurnedMemory& memory, float beta) {
  const Split tiles(t.outputs(), t.kernels.rows_outputs);
  DenseArguments a{};
  a.x_vector = t.kernels.width;
  a.x_step = t.columns;
  a.w_output = t.pixels() * kLanes;
  a.w_step = 1;
  a.steps = part.pixel_count * kLanes;
  a.runs = 1;
  a.y_vector = t.kernels.width;
  a.y_output = t.terms();
  a.beta = beta;
  for (std::int64_t tile = 0; tile < tiles.parts; ++tile) {
    const std::int64_t output = part.group * t.outputs() + tiles.begin(tile);
    a.w = t.dy.f32() + ((block * t.dy.shape()[1] + output) * t.pixels() + part.pixel) * kLanes;
    for (std::int64_t strip = 0; strip < part.strips(t); ++strip) {
      a.x = memory.panel + strip * t.strip_floats();
      a.y = t.dw.f32() + output * t.terms() + part.first_term + strip * t.columns;
      a.columns = part.term_count - strip * t.columns;
      t.kernels.dense_rows(a, t.kernels.dense_vectors, tiles.size(tile));
    }
  }
}

/// The gradient of some terms, over all pixels and blocks.
void sum_terms(const TurnedColumns& t, Part part, const TurnedMemory& memory, float beta) {
  for (part.pixel = 0; part.pixel < t.pixels(); part.pixel += kPixels) {
    part.pixel_count = std::min(kPixels, t.pixels() - part.pixel);
    for (std::int64_t p = 0; p < part.pixel_count; ++p) {
      const std::int64_t pixel = part.pixel + p;
      list_sources(t.rows, t.cols, t.x.shape()[3], pixel / t.cols.count(), pixel % t.cols.count(),
                   1, memory.offsets + p * t.taps());
    }
    for (std::int64_t block = 0; block < t.blocks(); ++block) {
      turn(t, part, block, memory);
      add_products(t, part, block, memory, part.pixel == 0 && block == 0 ? beta : 1.0F);
    }
  }
}

}  // namespace

bool columns_suit_filter(const Conv2dSpec& spec, const Shape& w) {
  const bool strided = spec.stride != Extent2{1, 1};
  return columns_suit(spec, w) ||
         (strided && w[0] / spec.groups >= 32 && w.count_per_sample() >= 128);
}

void columns_backward_filter(CpuStream& stream, const Conv2dSpec& spec, ConstView x, ConstView dy,
                             float beta, View dw) {
  const TurnedColumns t(kernels_for(stream.isa()), spec, x, dy, dw);
  TurnedMemory memory(t);
  auto* const scratch =
      static_cast<std::byte*>(stream.workspace(stream.threads() * memory.bytes()));
  const std::int64_t together = kStrips * t.columns;
  const std::int64_t parts = (t.terms() + together - 1) / together;
  stream.parallel_for(t.groups * parts, [&](std::int64_t begin, std::int64_t end, int thread) {
    TurnedMemory mine = memory;
    mine.lay_out(scratch + thread * memory.bytes());
    for (std::int64_t item = begin; item < end; ++item) {
      const std::int64_t first = item % parts * together;
      sum_terms(t, {item / parts, first, std::min(together, t.terms() - first), 0, 0}, mine, beta);
    }
  });
}

}  // namespace ringlet::lanes
