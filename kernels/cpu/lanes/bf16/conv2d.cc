#include <algorithm>
#include <array>

#include "kernels/cpu/lanes/bf16/bf16.h"
#include "kernels/cpu/lanes/bf16/table.h"
#include "kernels/cpu/lanes/conv2d_plan.h"
#include "kernels/cpu/lanes/positions.h"

namespace ringlet::lanes::bf16 {

namespace {

constexpr std::int64_t kBandBytes = 1 << 20;  // of the source's rows that go together, at most
constexpr std::int64_t kLeastDepth = 6;       // of a tile that is worth its time
constexpr std::int64_t kMostTaps = 32;        // along an axis

/// The largest divisor of `rows` that a tile can hold.
int depth_of(std::int64_t rows) {
  for (int depth = kTile; depth > 1; --depth) {
    if (rows % depth == 0) return depth;
  }
  return 1;
}

/// Along one axis: position i of the result sees the sources i * stride + first + t, 0 <= t < taps,
/// the t-th by the kernel's tap(t). Sources below 0 and from `extent` on are zeros.
class Window {
 public:
  static Window of_output(const Axis& axis) {
    return {Positions::of_output(axis), false, axis.in, -axis.padding, axis.stride};
  }
  /// Of one kind (positions.h). Their sources fall as their taps rise, so taps go backwards.
  static Window of_input(const Axis& axis, std::int64_t kind) {
    const Positions positions = Positions::of_input(axis, kind);
    const std::int64_t last = positions.taps() == 0 ? 0 : positions.tap(positions.taps() - 1);
    return {positions, true, axis.out, (positions.position(0) + axis.padding - last) / axis.stride,
            1};
  }

  std::int64_t count() const { return positions_.count(); }
  std::int64_t position(std::int64_t i) const { return positions_.position(i); }
  std::int64_t step() const { return positions_.step(); }
  std::int64_t taps() const { return positions_.taps(); }
  std::int64_t tap(std::int64_t t) const { return positions_.tap(backwards_ ? taps() - 1 - t : t); }
  /// Sources that `some` positions side by side see.
  std::int64_t seen(std::int64_t some) const { return (some - 1) * stride + taps(); }

  std::int64_t extent, first, stride;

 private:
  Window(const Positions& positions, bool backwards, std::int64_t source_extent,
         std::int64_t first_source, std::int64_t source_stride)
      : extent(source_extent),
        first(first_source),
        stride(source_stride),
        positions_(positions),
        backwards_(backwards) {}

  Positions positions_;
  bool backwards_;
};

/// to[output, position] = act(bias + beta * to + sum over terms).
struct Product {
  const Bits* from = nullptr;  ///< [blocks][channels][height][width][16]
  std::int64_t channels = 0;
  Window rows, cols;
  const Bits* weights = nullptr;  ///< [tiles][taps of a column][steps][16][depth][2]
  std::int64_t outputs = 0;
  Bits* to = nullptr;  ///< [blocks][outputs][to_height][to_width][16]
  std::int64_t to_height = 0, to_width = 0;
  const float* bias = nullptr;
  float beta = 0;
  bool relu = false;

  std::int64_t pairs() const { return (channels + 1) / 2; }
  std::int64_t plane() const { return rows.extent * cols.extent * kLanes; }
  std::int64_t to_plane() const { return to_height * to_width * kLanes; }
  std::int64_t taps() const { return rows.taps() * cols.taps(); }
  bool empty() const { return rows.count() == 0 || cols.count() == 0; }
  /// Rows of B in a run.
  std::int64_t run() const { return cols.taps() * pairs(); }
  int depth() const { return depth_of(run()); }
  std::int64_t steps() const { return run() / depth(); }
  std::int64_t tiles() const { return (outputs + kTile - 1) / kTile; }
  std::int64_t tile_weights() const { return rows.taps() * run() * kRow; }
  std::int64_t packed_bytes() const { return Scratch::bytes<Bits>(tiles() * tile_weights()); }
  /// Elements of a row of the source, and of all its rows that `count` rows of positions see.
  std::int64_t source_row() const { return cols.seen(cols.count()) * pairs() * kRow; }
  std::int64_t sources(std::int64_t count) const { return rows.seen(count) * source_row(); }
  /// The rows of positions in bands whose sources fit.
  Split bands() const {
    std::int64_t count = rows.count();
    while (count > 1 && sources(count) * 2 > kBandBytes) count = (count + 1) / 2;
    return {rows.count(), count};
  }
  std::int64_t scratch_bytes() const {
    const Split split = bands();
    return Scratch::bytes<Bits>(sources((split.total + split.parts - 1) / split.parts));
  }
};

/// The source of a band, pairs of channels innermost, zeros around.
void interleave_band(const Table& table, const Product& p, const Bits* from, std::int64_t first_row,
                     std::int64_t rows, Bits* to) {
  const std::int64_t width = p.cols.seen(p.cols.count());
  const std::int64_t stride = p.pairs() * kRow;
  const std::int64_t left = std::clamp<std::int64_t>(-p.cols.first, 0, width);
  const std::int64_t inside = std::clamp<std::int64_t>(
      p.cols.extent - std::max<std::int64_t>(p.cols.first, 0), 0, width - left);
  for (std::int64_t row = first_row; row < first_row + rows; ++row, to += width * stride) {
    if (row < 0 || row >= p.rows.extent) {
      std::fill_n(to, width * stride, Bits{0});
      continue;
    }
    std::fill_n(to, left * stride, Bits{0});
    std::fill_n(to + (left + inside) * stride, (width - left - inside) * stride, Bits{0});
    const Bits* source =
        from + (row * p.cols.extent + std::max<std::int64_t>(p.cols.first, 0)) * kLanes;
    for (std::int64_t pair = 0; pair < p.pairs(); ++pair) {
      const Bits* const second = 2 * pair + 1 < p.channels ? source + p.plane() : nullptr;
      table.interleave({{source, second}, inside, to + left * stride + pair * kRow, stride});
      source += 2 * p.plane();
    }
  }
}

/// Tiles of sums, and where the products of a band of rows go.
class BandProduct {
 public:
  /// Of one block; `source`: the band's, as interleave_band() has it.
  BandProduct(const Table& table, const Product& p, std::int64_t block, std::int64_t first_row,
              const Bits* source)
      : table_(table), p_(p), block_(block), first_row_(first_row), source_(source) {
    for (std::int64_t r = 0; r < p.rows.taps(); ++r) {
      runs_[static_cast<std::size_t>(r)] = r * p.source_row();
    }
    tiles_.b_runs = runs_.data();
    tiles_.runs = p.rows.taps();
    tiles_.steps = p.steps();
    tiles_.depth = p.depth();
    for (int i = 0; i < 2; ++i) {
      for (int j = 0; j < 2; ++j) tiles_.sums[i][j] = sums_[i][j];
    }
    round_.y_row = p.to_plane();
    round_.y_position = p.cols.step() * kLanes;
    round_.beta = p.beta;
    round_.relu = p.relu;
  }

  /// One or two tiles of outputs from `tile` on, in all positions of `rows` rows.
  void multiply(std::int64_t tile, std::int64_t rows) {
    const std::int64_t positions = p_.cols.count(), step = p_.cols.stride * p_.pairs() * kRow;
    tiles_.rows = static_cast<int>(std::min<std::int64_t>(2, p_.tiles() - tile));
    tiles_.a[0] = p_.weights + tile * p_.tile_weights();
    tiles_.a[1] = tiles_.a[0] + p_.tile_weights();
    for (std::int64_t row = 0; row < rows; ++row) {
      for (std::int64_t col = 0; col < positions; col += 2) {
        tiles_.columns = static_cast<int>(std::min<std::int64_t>(2, positions - col));
        tiles_.b[0] = source_ + row * p_.rows.stride * p_.source_row() + col * step;
        tiles_.b[1] = tiles_.b[0] + step;
        table_.multiply(tiles_);
        for (int i = 0; i < tiles_.rows; ++i) store(tile + i, i, first_row_ + row, col);
      }
    }
  }

 private:
  /// Row i of the tiles of sums, to one or two positions.
  void store(std::int64_t tile, int i, std::int64_t row, std::int64_t col) {
    const std::int64_t output = tile * kTile;
    round_.sums[0] = sums_[i][0];
    round_.sums[1] = sums_[i][1];
    round_.columns = tiles_.columns;
    round_.rows = static_cast<int>(std::min(kTile, p_.outputs - output));
    round_.bias = p_.bias == nullptr ? nullptr : p_.bias + output;
    round_.y = p_.to + (block_ * p_.outputs + output) * p_.to_plane() +
               (p_.rows.position(row) * p_.to_width + p_.cols.position(col)) * kLanes;
    table_.round(round_);
  }

  const Table& table_;
  const Product& p_;
  std::int64_t block_, first_row_;
  const Bits* source_;
  std::array<std::int64_t, kMostTaps> runs_{};
  alignas(64) float sums_[2][2][kSums];
  TileProduct tiles_{};
  Round round_{};
};

/// A band of rows of one block.
void multiply_band(const Table& table, const Product& p, std::int64_t block, std::int64_t first,
                   std::int64_t count, Bits* scratch) {
  interleave_band(table, p, p.from + block * p.channels * p.plane(),
                  first * p.rows.stride + p.rows.first, p.rows.seen(count), scratch);
  BandProduct band(table, p, block, first, scratch);
  for (std::int64_t tile = 0; tile < p.tiles(); tile += 2) band.multiply(tile, count);
}

/// `scratch`: scratch_bytes() for each thread.
void multiply(CpuStream& stream, const Product& p, std::int64_t blocks, std::byte* scratch) {
  const Table& table = *table_for(stream.bf16_products());
  const Split bands = p.bands();
  stream.parallel_for(blocks * bands.parts, [&](std::int64_t begin, std::int64_t end, int thread) {
    auto* const memory = reinterpret_cast<Bits*>(scratch + thread * p.scratch_bytes());
    table.begin(p.depth());
    for (std::int64_t item = begin; item < end; ++item) {
      const std::int64_t band = item % bands.parts;
      multiply_band(table, p, item / bands.parts, bands.begin(band), bands.size(band), memory);
    }
    table.end();
  });
}

/// Elements between weights of neighbouring outputs, channels and rows of the kernel.
struct WeightSteps {
  std::int64_t output, channel, row;
};

/// The product's tiles of A: pairs of channels, zeros where there is none.
void pack_weights(CpuStream& stream, const Product& p, const Bits* w, WeightSteps steps, Bits* to) {
  const std::int64_t pairs = p.pairs(), depth = p.depth(), row_taps = p.rows.taps();
  const auto pack_row = [&](std::int64_t output, std::int64_t r, Bits* row) {
    // Of output's row of the tile, steps are 2 * depth elements, tiles apart.
    std::int64_t at = 0;
    for (std::int64_t c = 0; c < p.cols.taps(); ++c) {
      const Bits* from = w + output * steps.output + p.rows.tap(r) * steps.row + p.cols.tap(c);
      for (std::int64_t pair = 0; pair < pairs; ++pair, ++at, from += 2 * steps.channel) {
        Bits* const both = row + at / depth * (depth * kRow) + at % depth * 2;
        const bool exists = output < p.outputs;
        both[0] = exists ? from[0] : Bits{0};
        both[1] = exists && 2 * pair + 1 < p.channels ? from[steps.channel] : Bits{0};
      }
    }
  };
  stream.parallel_for(p.tiles() * kTile, [&](std::int64_t begin, std::int64_t end, int) {
    for (std::int64_t output = begin; output < end; ++output) {
      Bits* const tile = to + output / kTile * p.tile_weights() + output % kTile * depth * 2;
      for (std::int64_t r = 0; r < row_taps; ++r) pack_row(output, r, tile + r * p.run() * kRow);
    }
  });
}

/// Positions of dx that no tap reaches: dx = beta * dx.
void scale_positions(CpuStream& stream, const Product& p, std::int64_t planes) {
  alignas(64) static constexpr float kNothing[kSums] = {};
  const Table& table = *table_for(stream.bf16_products());
  stream.parallel_for(planes * p.rows.count(), [&](std::int64_t begin, std::int64_t end, int) {
    for (std::int64_t item = begin; item < end; ++item) {
      const std::int64_t row = p.rows.position(item % p.rows.count());
      Bits* const to = p.to + item / p.rows.count() * p.to_plane() + row * p.to_width * kLanes;
      for (std::int64_t j = 0; j < p.cols.count(); ++j) {
        Bits* const y = to + p.cols.position(j) * kLanes;
        table.round({{kNothing, nullptr}, 1, 1, y, 0, 0, nullptr, p.beta, false});
      }
    }
  });
}

Bits* bits_of(const ConstView& view) { return static_cast<Bits*>(const_cast<void*>(view.data())); }

/// The positions of dx of one kind.
Product data_product(const Conv2dSpec& spec, const ConstView& w, const ConstView& dy, float beta,
                     const View& dx, std::int64_t kind) {
  const Axis rows = row_axis(spec, dx.shape(), w.shape(), dy.shape());
  const Axis cols = col_axis(spec, dx.shape(), w.shape(), dy.shape());
  return {.from = bits_of(dy),
          .channels = dy.shape()[1],
          .rows = Window::of_input(rows, kind / spec.stride.w),
          .cols = Window::of_input(cols, kind % spec.stride.w),
          .outputs = w.shape()[1],
          .to = bits_of(dx),
          .to_height = rows.in,
          .to_width = cols.in,
          .beta = beta};
}

}  // namespace

const Table* table_for(Bf16Products products) {
  if constexpr (kX86) {
    if (products == Bf16Products::vectors) return &kVectors;
    if (products == Bf16Products::tiles) return &kTiles;
  }
  return nullptr;
}

bool suits(const Shape& w) {
  return w[0] % kTile == 0 && w[2] <= kMostTaps && depth_of(w[3] * ((w[1] + 1) / 2)) >= kLeastDepth;
}

bool suits(const CpuStream& stream, const Conv2dSpec& spec, const ConstView& x,
           const ConstView& w) {
  return table_for(stream.bf16_products()) != nullptr && x.dtype() == DType::bf16 &&
         x.layout() == Layout::lanes && x.shape()[0] > 0 && spec.groups == 1 &&
         spec.dilation == Extent2{1, 1} && suits(w.shape());
}

void conv2d_forward(CpuStream& stream, const Conv2dSpec& spec, const ConstView& x,
                    const ConstView& w, const ConstView& bias, Activation activation,
                    const View& y) {
  const Axis rows = row_axis(spec, x.shape(), w.shape(), y.shape());
  const Axis cols = col_axis(spec, x.shape(), w.shape(), y.shape());
  Product p{.from = bits_of(x),
            .channels = x.shape()[1],
            .rows = Window::of_output(rows),
            .cols = Window::of_output(cols),
            .outputs = w.shape()[0],
            .to = bits_of(y),
            .to_height = rows.out,
            .to_width = cols.out,
            .bias = bias.absent() ? nullptr : bias.f32(),
            .relu = activation == Activation::relu};
  const std::int64_t packed = p.packed_bytes();
  auto* const scratch =
      static_cast<std::byte*>(stream.workspace(packed + stream.threads() * p.scratch_bytes()));
  const std::int64_t kernel = w.shape()[2] * w.shape()[3];
  pack_weights(stream, p, bits_of(w), {w.shape()[1] * kernel, kernel, w.shape()[3]},
               reinterpret_cast<Bits*>(scratch));
  p.weights = reinterpret_cast<const Bits*>(scratch);
  multiply(stream, p, lane_blocks(x.shape()[0]), scratch + packed);
}

void conv2d_backward_data(CpuStream& stream, const Conv2dSpec& spec, const ConstView& w,
                          const ConstView& dy, float beta, const View& dx) {
  const std::int64_t kinds = std::int64_t{spec.stride.h} * spec.stride.w;
  const std::int64_t blocks = lane_blocks(dy.shape()[0]);
  std::int64_t packed = 0, bytes = 0;
  for (std::int64_t kind = 0; kind < kinds; ++kind) {
    const Product p = data_product(spec, w, dy, beta, dx, kind);
    if (p.empty() || p.taps() == 0) continue;
    packed = std::max(packed, p.packed_bytes());
    bytes = std::max(bytes, p.scratch_bytes());
  }
  auto* const scratch =
      static_cast<std::byte*>(stream.workspace(packed + stream.threads() * bytes));
  const std::int64_t kernel = w.shape()[2] * w.shape()[3];
  for (std::int64_t kind = 0; kind < kinds; ++kind) {
    Product p = data_product(spec, w, dy, beta, dx, kind);
    if (p.empty()) continue;
    if (p.taps() == 0) {
      scale_positions(stream, p, blocks * dx.shape()[1]);
      continue;
    }
    pack_weights(stream, p, bits_of(w), {kernel, w.shape()[1] * kernel, w.shape()[3]},
                 reinterpret_cast<Bits*>(scratch));
    p.weights = reinterpret_cast<const Bits*>(scratch);
    multiply(stream, p, blocks, scratch + packed);
  }
}

}  // namespace ringlet::lanes::bf16
