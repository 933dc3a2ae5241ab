#include <algorithm>
#include <array>

#include "kernels/cpu/lanes/bf16/bf16.h"
#include "kernels/cpu/lanes/bf16/table.h"
#include "kernels/cpu/lanes/conv2d_plan.h"

namespace ringlet::lanes::bf16 {

namespace {

constexpr std::int64_t kPosition =
    8 * kRow;  // elements of a turned position: eight pairs of samples
constexpr std::int64_t kStep = 2 * kPosition;  // of two positions, a tile of B, and of a tile of A
constexpr std::int64_t kSteps = 64;            // that go together, about
constexpr std::int64_t kTurnedBytes = 512 << 10;  // of x that is turned at a time, about
constexpr std::int64_t kMostRows = 64;            // that go together

/// dw = beta * dw + dy * x, as rows of pairs of positions.
struct FilterGradient {
  FilterGradient(const Conv2dSpec& spec, const ConstView& x_view, const ConstView& dy_view,
                 const View& dw_view)
      : rows(row_axis(spec, x_view.shape(), dw_view.shape(), dy_view.shape())),
        cols(col_axis(spec, x_view.shape(), dw_view.shape(), dy_view.shape())),
        blocks(lane_blocks(x_view.shape()[0])),
        channels(x_view.shape()[1]),
        outputs(dw_view.shape()[0]),
        x(static_cast<const Bits*>(x_view.data())),
        dy(static_cast<const Bits*>(dy_view.data())),
        dw(dw_view.f32()) {}

  std::int64_t taps() const { return rows.kernel * cols.kernel; }
  std::int64_t steps() const { return (cols.out + 1) / 2; }  // of a row
  std::int64_t output_tiles() const { return outputs / kTile; }
  std::int64_t channel_tiles() const { return channels / kTile; }
  /// Columns of x that are `stride` apart lie together, so that neighbouring positions of dy see
  /// neighbouring columns: [stride][line()].
  std::int64_t line() const { return 2 * steps() + (cols.kernel - 1) / cols.stride; }
  std::int64_t turned_row() const { return cols.stride * line() * kPosition; }
  std::int64_t turned_rows(std::int64_t count) const {
    return (count - 1) * rows.stride + rows.kernel;
  }
  /// Rows of dy, of all blocks, whose x is turned together: some of one block, or whole blocks.
  std::int64_t rows_together() const {
    const std::int64_t fit =
        kTurnedBytes / (turned_row() * static_cast<std::int64_t>(sizeof(Bits)));
    const std::int64_t whole = turned_rows(rows.out);
    if (fit < whole) {
      const std::int64_t some = std::max<std::int64_t>(1, (fit - rows.kernel) / rows.stride + 1);
      return (rows.out + (rows.out + some - 1) / some - 1) / ((rows.out + some - 1) / some);
    }
    const std::int64_t enough = (kSteps + rows.out * steps() - 1) / (rows.out * steps());
    return rows.out * std::clamp<std::int64_t>(enough, 1, std::min(blocks, fit / whole));
  }
  /// Rows of dy that are multiplied together.
  std::int64_t rows_at_once() const {
    return std::clamp<std::int64_t>(kSteps / steps(), 1, kMostRows);
  }
  std::int64_t turned_elements() const {
    const std::int64_t together = rows_together();
    return together <= rows.out ? turned_rows(together) * turned_row()
                                : together / rows.out * turned_rows(rows.out) * turned_row();
  }
  std::int64_t packed_elements() const {
    return output_tiles() * blocks * rows.out * steps() * kStep;
  }

  Axis rows, cols;
  std::int64_t blocks, channels, outputs;
  const Bits* x;   ///< [blocks][channels][rows.in][cols.in][16]
  const Bits* dy;  ///< [blocks][outputs][rows.out][cols.out][16]
  float* dw;
};

/// to [tiles of outputs][blocks][rows][steps][16 outputs][2 positions][16] = dy,
/// zeros beyond a row.
void pack_gradient(CpuStream& stream, const FilterGradient& g, Bits* to) {
  const std::int64_t plane = g.rows.out * g.cols.out * kLanes;
  const std::int64_t items = g.output_tiles() * g.blocks * g.rows.out;
  stream.parallel_for(items, [&](std::int64_t begin, std::int64_t end, int) {
    for (std::int64_t item = begin; item < end; ++item) {
      const std::int64_t row = item % g.rows.out, block = item / g.rows.out % g.blocks;
      const std::int64_t tile = item / g.rows.out / g.blocks;
      const Bits* from =
          g.dy + (block * g.outputs + tile * kTile) * plane + row * g.cols.out * kLanes;
      for (std::int64_t output = 0; output < kTile; ++output, from += plane) {
        Bits* at = to + item * g.steps() * kStep + output * kRow;
        for (std::int64_t col = 0; col + 2 <= g.cols.out; col += 2, at += kStep) {
          std::copy_n(from + col * kLanes, kRow, at);
        }
        if (g.cols.out % 2 != 0) {
          std::copy_n(from + (g.cols.out - 1) * kLanes, kLanes, at);
          std::fill_n(at + kLanes, kLanes, Bits{0});
        }
      }
    }
  });
}

/// Sixteen channels of `count` rows of a block of x from `first` on, turned.
void turn_rows(const Table& table, const FilterGradient& g, std::int64_t block,
               std::int64_t channel, std::int64_t first, std::int64_t count, Bits* to) {
  const std::int64_t plane = g.rows.in * g.cols.in * kLanes, line = g.line();
  const Bits* const image = g.x + (block * g.channels + channel) * plane;
  for (std::int64_t row = first; row < first + count; ++row) {
    for (std::int64_t apart = 0; apart < g.cols.stride; ++apart, to += line * kPosition) {
      // Column apart + stride * i - padding is inside for begin <= i < end.
      const auto reach = [&](std::int64_t col) {
        const std::int64_t ahead = col + g.cols.padding - apart;
        return ahead <= 0 ? 0 : std::min(line, (ahead + g.cols.stride - 1) / g.cols.stride);
      };
      const bool inside = row >= 0 && row < g.rows.in;
      const std::int64_t begin = inside ? reach(0) : line, end = inside ? reach(g.cols.in) : line;
      std::fill_n(to, begin * kPosition, Bits{0});
      std::fill_n(to + end * kPosition, (line - end) * kPosition, Bits{0});
      if (begin >= end) continue;
      const std::int64_t col = apart + g.cols.stride * begin - g.cols.padding;
      Turn turn{{}, g.cols.stride * kLanes, kPosition, end - begin, to + begin * kPosition};
      for (std::int64_t term = 0; term < kTile; ++term) {
        turn.from[term] = image + term * plane + (row * g.cols.in + col) * kLanes;
      }
      table.turn(turn);
    }
  }
}

/// What an item works on: sixteen channels and some tiles of outputs.
struct Item {
  std::int64_t channel_tile, first_output_tile, output_tiles;
};

/// A thread's memory.
struct Memory {
  Bits* turned;
  float* sums;  ///< [tiles of outputs][taps][16][16]
};

/// Rows [first, first + count) of dy over all blocks, whose x lies in memory.turned from `origin`'s
/// row on.
void add_rows(const Table& table, const FilterGradient& g, const Bits* packed, const Item& item,
              std::int64_t origin, std::int64_t first, std::int64_t count, const Memory& memory) {
  std::array<std::int64_t, kMostRows> runs{};
  for (std::int64_t i = 0; i < count; ++i) {
    const std::int64_t row = first + i;
    const std::int64_t blocks_before = row / g.rows.out - origin / g.rows.out;
    const std::int64_t in_block = row % g.rows.out - (blocks_before == 0 ? origin % g.rows.out : 0);
    runs[static_cast<std::size_t>(i)] =
        (blocks_before * g.turned_rows(g.rows.out) + in_block * g.rows.stride) * g.turned_row();
  }
  TileProduct p{};
  p.b_runs = runs.data();
  p.runs = count;
  p.steps = g.steps();
  p.depth = kTile;
  p.adds = first > 0;
  const std::int64_t rows = g.blocks * g.rows.out;
  for (std::int64_t tile = 0; tile < item.output_tiles; tile += 2) {
    p.rows = static_cast<int>(std::min<std::int64_t>(2, item.output_tiles - tile));
    for (int i = 0; i < p.rows; ++i) {
      p.a[i] = packed + ((item.first_output_tile + tile + i) * rows + first) * g.steps() * kStep;
    }
    for (std::int64_t tap = 0; tap < g.taps(); tap += 2) {
      p.columns = static_cast<int>(std::min<std::int64_t>(2, g.taps() - tap));
      for (int j = 0; j < p.columns; ++j) {
        const std::int64_t r = (tap + j) / g.cols.kernel, c = (tap + j) % g.cols.kernel;
        p.b[j] = memory.turned + r * g.turned_row() +
                 (c % g.cols.stride * g.line() + c / g.cols.stride) * kPosition;
        for (int i = 0; i < p.rows; ++i) {
          p.sums[i][j] = memory.sums + ((tile + i) * g.taps() + tap + j) * kSums;
        }
      }
      table.multiply(p);
    }
  }
}

void store_sums(const FilterGradient& g, const Item& item, float beta, const float* sums) {
  for (std::int64_t output = 0; output < item.output_tiles * kTile; ++output) {
    const float* const from = sums + output / kTile * g.taps() * kSums + output % kTile * kTile;
    float* to = g.dw + ((item.first_output_tile * kTile + output) * g.channels +
                        item.channel_tile * kTile) *
                           g.taps();
    for (std::int64_t channel = 0; channel < kTile; ++channel) {
      for (std::int64_t tap = 0; tap < g.taps(); ++tap, ++to) {
        const float sum = from[tap * kSums + channel];
        *to = beta == 0 ? sum : beta * *to + sum;
      }
    }
  }
}

void sum_item(const Table& table, const FilterGradient& g, const Bits* packed, const Item& item,
              float beta, const Memory& memory) {
  const std::int64_t together = g.rows_together(), all = g.blocks * g.rows.out;
  std::int64_t next = 0;
  for (std::int64_t origin = 0; origin < all; origin = next) {
    next = std::min(all, origin + together);
    if (together < g.rows.out) next = std::min(next, (origin / g.rows.out + 1) * g.rows.out);
    Bits* turned = memory.turned;
    for (std::int64_t row = origin; row < next;) {
      const std::int64_t in_block = row % g.rows.out;
      const std::int64_t count = std::min(next - row, g.rows.out - in_block);
      turn_rows(table, g, row / g.rows.out, item.channel_tile * kTile,
                in_block * g.rows.stride - g.rows.padding, g.turned_rows(count), turned);
      turned += g.turned_rows(count) * g.turned_row();
      row += count;
    }
    for (std::int64_t row = origin; row < next; row += g.rows_at_once()) {
      add_rows(table, g, packed, item, origin, row, std::min(g.rows_at_once(), next - row), memory);
    }
  }
  store_sums(g, item, beta, memory.sums);
}

}  // namespace

bool suits_filter(const CpuStream& stream, const Conv2dSpec& spec, const ConstView& x,
                  const ConstView& dw) {
  return table_for(stream.bf16_products()) != nullptr && x.dtype() == DType::bf16 &&
         x.layout() == Layout::lanes && x.shape()[0] > 0 && spec.groups == 1 &&
         spec.dilation == Extent2{1, 1} && dw.shape()[0] % kTile == 0 && dw.shape()[1] % kTile == 0;
}

void conv2d_backward_filter(CpuStream& stream, const Conv2dSpec& spec, const ConstView& x,
                            const ConstView& dy, float beta, const View& dw) {
  const Table& table = *table_for(stream.bf16_products());
  const FilterGradient g(spec, x, dy, dw);
  // Tiles of channels are items; where they are fewer than threads, outputs are shared as well.
  const std::int64_t shares = (stream.threads() + g.channel_tiles() - 1) / g.channel_tiles();
  const Split outputs(g.output_tiles(), (g.output_tiles() + shares - 1) / shares);
  const std::int64_t packed = Scratch::bytes<Bits>(g.packed_elements());
  const std::int64_t turned = Scratch::bytes<Bits>(g.turned_elements());
  const std::int64_t most_tiles = (g.output_tiles() + outputs.parts - 1) / outputs.parts;
  const std::int64_t sums = Scratch::bytes<float>(most_tiles * g.taps() * kSums);
  auto* const scratch =
      static_cast<std::byte*>(stream.workspace(packed + stream.threads() * (turned + sums)));
  auto* const gradient = reinterpret_cast<Bits*>(scratch);
  pack_gradient(stream, g, gradient);
  const std::int64_t items = g.channel_tiles() * outputs.parts;
  stream.parallel_for(items, [&](std::int64_t begin, std::int64_t end, int thread) {
    std::byte* const mine = scratch + packed + thread * (turned + sums);
    const Memory memory{reinterpret_cast<Bits*>(mine), reinterpret_cast<float*>(mine + turned)};
    table.begin(kTile);
    for (std::int64_t i = begin; i < end; ++i) {
      const std::int64_t share = i % outputs.parts;
      const Item item{i / outputs.parts, outputs.begin(share), outputs.size(share)};
      sum_item(table, g, gradient, item, beta, memory);
    }
    table.end();
  });
}

}  // namespace ringlet::lanes::bf16
