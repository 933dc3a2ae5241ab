// The gradient of a convolution's filters (kernels/conv2d.h) in two stages, with the same bits in
// every run: cuDNN's deterministic engines add up all pixels of all samples in a few threads.
//
//   dw[o,n] = beta * dw[o,n] + sum over pixels k of dy[k,o] * x[k,n]
//
// For each group this is a product of matrices. o is an output channel, n a filter's element in the
// order in which dw has them, and k an output pixel of any sample. x[k,n] is the input's element
// that element n meets there, and 0 outside of the image; no such matrix is written anywhere.
//
// First stage: a block adds up a tile of (o, n) over its share of the pixels, `kDepth` at a time,
// that lie in shared memory. A thread has kRows x kColumns sums in registers. Each step of a pixel
// takes kRows + kColumns numbers from shared memory and kRows * kColumns multiply-adds
// (bench/sass_counts says what share of a GPU's rate that leaves).
// Second stage: what the blocks found is added up in double, in an order that follows from the
// shapes alone, as does the number of shares.
//
// Products and sums of the first stage are f32, with one rounding for both, as in
// std::fma. Narrow factors are widened, which is exact.
#pragma once

#include <algorithm>
#include <array>
#include <cmath>
#include <cstdint>
#include <limits>

#include "kernels/conv2d.h"
#include "kernels/elements.h"
#include "kernels/grid/divisor.h"
#include "kernels/grid/grid.h"
#include "kernels/grid/pack.h"

namespace ringlet::grid {

/// The tile of a block, the sums of a thread, and the blocks that a multiprocessor is to have room
/// for: with 128 registers a thread, 168 and 80.
template <int kTileOutputs, int kTileElements, int kOfRows, int kOfColumns, int kBlocks>
struct FilterTile {
  static constexpr int kResident = kBlocks;
  static constexpr int kOutputs = kTileOutputs, kElements = kTileElements;  // o and n
  static constexpr int kRows = kOfRows, kColumns = kOfColumns;              // of a thread: 4 or 8
  static constexpr int kThreads = kOutputs / kRows * (kElements / kColumns);
};
using LargeFilterTile = FilterTile<128, 128, 8, 8, 2>;
using MiddleFilterTile = FilterTile<64, 64, 8, 8, 6>;
using SmallFilterTile = FilterTile<32, 32, 4, 4, 12>;

/// Threads that keep an H100 busy: four warps for each scheduler.
inline constexpr std::int64_t kFilterThreads = std::int64_t{132} * 512;

/// How the work is cut: into groups * output_tiles * element_tiles tiles, each of them into shares
/// of the pixels.
struct FilterPlan {
  std::int64_t output_tiles = 1, element_tiles = 1, shares = 1;
  std::int64_t pixels_a_share = 0;  ///< a multiple of a turn's, except where there is nothing

  /// `outputs`, `elements`: of a group's matrix. `pixels`: of all samples.
  template <class Tile>
  static FilterPlan of(Tile, std::int64_t groups, std::int64_t outputs, std::int64_t elements,
                       std::int64_t pixels, int depth) {
    constexpr std::int64_t kFewestTurns = 8;               // or the second stage would take longer
    constexpr std::int64_t kMost = std::int64_t{1} << 29;  // pixels of a share: 32 bits suffice
    FilterPlan plan;
    plan.output_tiles = (outputs + Tile::kOutputs - 1) / Tile::kOutputs;
    plan.element_tiles = (elements + Tile::kElements - 1) / Tile::kElements;
    const std::int64_t tiles = groups * plan.output_tiles * plan.element_tiles;
    const std::int64_t wanted = std::max<std::int64_t>(1, kFilterThreads / Tile::kThreads / tiles);
    const std::int64_t turns = (pixels + depth - 1) / depth;
    const std::int64_t of_share = std::max((turns + wanted - 1) / wanted, kFewestTurns);
    plan.pixels_a_share = std::min(of_share * depth, kMost);
    plan.shares =
        std::max<std::int64_t>(1, (pixels + plan.pixels_a_share - 1) / plan.pixels_a_share);
    return plan;
  }
};

/// Where the elements of a tensor lie, in elements: takes_filter_gradient().
struct FilterStrides {
  std::int64_t sample = 0;
  std::int32_t channel = 0, pixel = 0;

  static FilterStrides of(const Shape& shape, Layout layout) {
    const auto pixels = static_cast<std::int32_t>(shape[2] * shape[3]);
    const auto channels = static_cast<std::int32_t>(shape[1]);
    if (layout == Layout::nhwc) return {shape.count_per_sample(), 1, channels};
    return {shape.count_per_sample(), pixels, 1};
  }
};

/// The first stage: partial[share][o][n] of each tile.
template <class T, class Tile>
struct FilterProducts {
  static constexpr int kThreads = Tile::kThreads;
  static constexpr int kDepth = 16;  // pixels of a turn
  static constexpr int kAtOnce = 4;  // of them
  static constexpr int kRows = Tile::kRows, kColumns = Tile::kColumns;
  static constexpr int kResident = Tile::kResident;
  // A thread brings the elements first, first + kStep, ... of one pixel.
  static constexpr int kStep = kThreads / kDepth;
  static constexpr int kBringsDy = Tile::kOutputs / kStep, kBringsX = Tile::kElements / kStep;
  static constexpr int kPad = 4;  // so that neighbouring pixels lie in other banks

  /// Where element n of a filter looks, seen from the window's corner.
  struct alignas(16) Element {
    std::int32_t offset, row, column, unused;
  };
  /// A block's share of the pixels and its tile.
  struct Block {
    std::int32_t sample, from;               // of the first pixel, and where it lies there
    std::int32_t pixels;                     // how many
    std::int32_t first_output, last_output;  // of all channels; the last one of the group
  };
  struct Shared {
    Element elements[Tile::kElements];
    alignas(16) float dy[kDepth][Tile::kOutputs + kPad];
    alignas(16) float x[kDepth][Tile::kElements + kPad];
    Block block;  // not in registers, which are scarce
  };
  struct State {
    float sums[kRows][kColumns];
    float dy[kBringsDy], x[kBringsX];  // of the next turn
  };

  FilterPlan plan;
  Conv2dSpec spec;
  Divisor output_tiles, element_tiles, groups;
  Divisor pixels, width;  // of an output image
  std::int32_t height_in = 0, width_in = 0;
  std::int64_t all_pixels = 0;                   // of all samples
  std::int64_t outputs = 0, elements = 0;        // of a group
  Divisor group_channels, window_width, window;  // C/groups, KW, KH KW
  bool channels_last = false;                    // in the images: neighbouring threads have them
  bool filter_channels_last = false;
  FilterStrides dy_strides, x_strides;
  const T* dy = nullptr;
  const T* x = nullptr;
  float* partial = nullptr;

  /// What the block's number says.
  struct Place {
    std::int64_t share, group, first_output, first_element;
  };
  RINGLET_HOST_DEVICE Place place(std::int64_t block) const {
    const std::int64_t column = element_tiles.quotient(block);
    const std::int64_t row = output_tiles.quotient(column);
    const std::int64_t share = groups.quotient(row);
    return {share, row - share * groups.divisor(),
            (column - row * output_tiles.divisor()) * Tile::kOutputs,
            (block - column * element_tiles.divisor()) * Tile::kElements};
  }
  RINGLET_HOST_DEVICE std::int32_t pixels_of(const Place& at) const {
    const std::int64_t left = all_pixels - at.share * plan.pixels_a_share;
    return static_cast<std::int32_t>(left < plan.pixels_a_share ? left : plan.pixels_a_share);
  }
  RINGLET_HOST_DEVICE std::int32_t turns(std::int64_t block) const {
    return (pixels_of(place(block)) + kDepth - 1) / kDepth;
  }

  /// The elements' table, sums of nothing, and where the block begins.
  RINGLET_HOST_DEVICE void begin(const ThreadIndex& index, Shared& shared, State& state) const {
    const Place at = place(index.block);
    RINGLET_ROLLED
    for (int i = index.thread; i < Tile::kElements; i += kThreads) {
      shared.elements[i] = element(at.group, at.first_element + i);
    }
    RINGLET_UNROLLED
    for (int i = 0; i < kRows; ++i) {
      RINGLET_UNROLLED
      for (int j = 0; j < kColumns; ++j) state.sums[i][j] = 0;
    }
    if (index.thread == 0) shared.block = block_of(at);
  }

  RINGLET_HOST_DEVICE void start(const ThreadIndex& index, const Shared& shared,
                                 State& state) const {
    fetch(0, index, shared, state);
  }

  RINGLET_HOST_DEVICE void fill(const ThreadIndex& index, Shared& shared,
                                const State& state) const {
    const int pixel = pixel_of(index.thread), first = first_of(index.thread);
    RINGLET_UNROLLED
    for (int i = 0; i < kBringsDy; ++i) shared.dy[pixel][first + i * kStep] = state.dy[i];
    RINGLET_UNROLLED
    for (int i = 0; i < kBringsX; ++i) shared.x[pixel][first + i * kStep] = state.x[i];
  }

  RINGLET_HOST_DEVICE void work(std::int32_t turn, const ThreadIndex& index, const Shared& shared,
                                State& state) const {
    fetch(turn + 1, index, shared, state);  // arrives while this turn's are multiplied
    const int row = row_of(index.thread), column = column_of(index.thread);
    RINGLET_ROLLED  // as a whole it would want more registers than there are
        for (int k = 0; k < kDepth; k += kAtOnce) {
      RINGLET_UNROLLED
      for (int l = 0; l < kAtOnce; ++l) {
        float a[kRows], b[kColumns];
        take<kRows, Tile::kOutputs>(shared.dy[k + l], row, a);
        take<kColumns, Tile::kElements>(shared.x[k + l], column, b);
        multiply(a, b, state);
      }
    }
  }

  RINGLET_HOST_DEVICE void end(const ThreadIndex& index, const State& state) const {
    const Place at = place(index.block);
    const int row = row_of(index.thread), column = column_of(index.thread);
    const std::int64_t all = groups.divisor() * outputs * elements;
    float* const tile = partial + at.share * all + at.group * outputs * elements;
    RINGLET_UNROLLED
    for (int i = 0; i < kRows; ++i) {
      RINGLET_UNROLLED
      for (int j = 0; j < kColumns; ++j) {
        const std::int64_t o = at.first_output + place_of<kRows, Tile::kOutputs>(row, i);
        const std::int64_t n = at.first_element + place_of<kColumns, Tile::kElements>(column, j);
        if (o < outputs && n < elements) tile[o * elements + n] = state.sums[i][j];
      }
    }
  }

 private:
  RINGLET_HOST_DEVICE static void multiply(const float* a, const float* b, State& state) {
    RINGLET_UNROLLED
    for (int i = 0; i < kRows; ++i) {
      RINGLET_UNROLLED
      for (int j = 0; j < kColumns; ++j) {
        state.sums[i][j] = std::fma(a[i], b[j], state.sums[i][j]);
      }
    }
  }

  RINGLET_HOST_DEVICE Block block_of(const Place& at) const {
    const std::int64_t begins = at.share * plan.pixels_a_share;
    const std::int64_t sample = pixels.quotient(begins);
    return {static_cast<std::int32_t>(sample),
            static_cast<std::int32_t>(begins - sample * pixels.divisor()), pixels_of(at),
            static_cast<std::int32_t>(at.group * outputs + at.first_output),
            static_cast<std::int32_t>((at.group + 1) * outputs) - 1};
  }

  // Neighbouring threads bring what lies side by side in memory.
  RINGLET_HOST_DEVICE int pixel_of(int thread) const {
    return channels_last ? thread / kStep : thread % kDepth;
  }
  RINGLET_HOST_DEVICE int first_of(int thread) const {
    return channels_last ? thread % kStep : thread / kDepth;
  }
  static constexpr int kAcross = Tile::kElements / kColumns;  // threads
  RINGLET_HOST_DEVICE static int row_of(int thread) { return thread / kAcross; }
  RINGLET_HOST_DEVICE static int column_of(int thread) { return thread % kAcross; }

  /// A thread's numbers are packs of four, one in each `kCount / 4`th of the tile.
  template <int kCount, int kSide>
  RINGLET_HOST_DEVICE static int place_of(int thread, int i) {
    return i / kPack * (kSide / (kCount / kPack)) + thread * kPack + i % kPack;
  }
  template <int kCount, int kSide>
  RINGLET_HOST_DEVICE static void take(const float* from, int thread, float* into) {
    RINGLET_UNROLLED
    for (int i = 0; i < kCount; i += kPack) {
      const auto pack = load_pack<kPack>(from + place_of<kCount, kSide>(thread, i), 0);
      for (int j = 0; j < kPack; ++j) into[i + j] = pack[j];
    }
  }

  /// Beyond the last element it is the last one: nobody looks at those sums.
  RINGLET_HOST_DEVICE Element element(std::int64_t group, std::int64_t number) const {
    const std::int64_t n = number < elements ? number : elements - 1;
    const std::int64_t channel =
        filter_channels_last ? group_channels.remainder(n) : window.quotient(n);
    const std::int64_t tap =
        filter_channels_last ? group_channels.quotient(n) : window.remainder(n);
    const std::int64_t row = window_width.quotient(tap) * spec.dilation.h;
    const std::int64_t column = window_width.remainder(tap) * spec.dilation.w;
    return {
        static_cast<std::int32_t>((group * group_channels.divisor() + channel) * x_strides.channel +
                                  (row * width_in + column) * x_strides.pixel),
        static_cast<std::int32_t>(row), static_cast<std::int32_t>(column), 0};
  }

  /// Reads what the thread brings of a turn: zeros outside of the image and behind the share's last
  /// pixel. Where nothing is to be read, it reads the sample's first element and forgets it, which
  /// takes fewer instructions than a jump.
  RINGLET_HOST_DEVICE void fetch(std::int32_t turn, const ThreadIndex& index, const Shared& shared,
                                 State& state) const {
    const Block& block = shared.block;
    const int first = first_of(index.thread);
    const std::int32_t k = turn * kDepth + pixel_of(index.thread);
    const bool is_there = k < block.pixels;
    const std::int32_t from = block.from + (is_there ? k : 0);
    const std::int32_t samples = pixels.quotient(from);
    const std::int32_t pixel = from - samples * static_cast<std::int32_t>(pixels.divisor());
    const std::int32_t row = width.quotient(pixel);
    const std::int32_t column = pixel - row * static_cast<std::int32_t>(width.divisor());
    const std::int64_t sample = std::int64_t{block.sample} + samples;

    const T* const dy_sample = dy + sample * dy_strides.sample;
    const std::int32_t dy_pixel = pixel * dy_strides.pixel;
    RINGLET_UNROLLED
    for (int i = 0; i < kBringsDy; ++i) {
      // Beyond the last output it is the last one: nobody looks at those sums.
      const std::int32_t next = block.first_output + first + i * kStep;
      const std::int32_t output = next < block.last_output ? next : block.last_output;
      const float value = load(dy_sample[dy_pixel + output * dy_strides.channel]);
      state.dy[i] = is_there ? value : 0.0F;
    }
    constexpr std::int32_t kOutside = -(std::int32_t{1} << 30);  // of every image
    const std::int32_t top = is_there ? row * spec.stride.h - spec.padding.h : kOutside;
    const std::int32_t left = column * spec.stride.w - spec.padding.w;
    const T* const x_sample = x + sample * x_strides.sample;
    const std::int32_t corner = is_there ? (top * width_in + left) * x_strides.pixel : 0;
    RINGLET_UNROLLED
    for (int i = 0; i < kBringsX; ++i) {
      const Element e = shared.elements[first + i * kStep];
      const bool inside =
          (static_cast<std::uint32_t>(top + e.row) < static_cast<std::uint32_t>(height_in)) &
          (static_cast<std::uint32_t>(left + e.column) < static_cast<std::uint32_t>(width_in));
      const float value = load(x_sample[inside ? corner + e.offset : 0]);
      state.x[i] = inside ? value : 0.0F;
    }
  }
};

/// The second stage, of few shares: a thread an element.
struct FilterSum {
  const float* partial;
  std::int64_t count, shares;
  float beta;
  float* dw;

  RINGLET_HOST_DEVICE void operator()(std::int64_t i) const {
    double sum = 0;
    RINGLET_ROLLED
    for (std::int64_t share = 0; share < shares; ++share) {
      sum += static_cast<double>(partial[share * count + i]);
    }
    dw[i] = element::blend(beta, dw[i], static_cast<float>(sum));
  }
};

/// The same of many: kSummands threads an element, and a tree.
template <int kSummands>
struct FilterTreeSum {
  static constexpr int kThreads = 256;
  static constexpr int kWide = kThreads / kSummands;  // elements of a block, side by side
  static constexpr int kSteps = tree_steps(kSummands);
  static constexpr int kPhases = kSteps + 2;
  struct Shared {
    double sums[kThreads];
  };
  FilterSum all;

  RINGLET_HOST_DEVICE void phase(int k, const ThreadIndex& index, Shared& shared) const {
    const std::int64_t i = index.block * kWide + index.thread % kWide;
    if (k == 0) {
      shared.sums[index.thread] = i < all.count ? share(i, index.thread / kWide) : 0;
    } else if (k <= kSteps) {
      tree_step(shared.sums, kThreads, k - 1, index.thread, Sum{});
    } else if (index.thread < kWide && i < all.count) {
      all.dw[i] =
          element::blend(all.beta, all.dw[i], static_cast<float>(shared.sums[index.thread]));
    }
  }

 private:
  /// Shares first, first + kSummands, ...: four are asked for before the first is added.
  RINGLET_HOST_DEVICE double share(std::int64_t i, std::int64_t first) const {
    constexpr int kAhead = 4;
    double sum = 0;
    RINGLET_ROLLED
    for (std::int64_t s = first; s < all.shares; s += kAhead * kSummands) {
      float found[kAhead];
      for (int k = 0; k < kAhead; ++k) {
        const std::int64_t at = s + k * kSummands;
        found[k] = at < all.shares ? all.partial[at * all.count + i] : 0.0F;
      }
      for (int k = 0; k < kAhead; ++k) sum += static_cast<double>(found[k]);
    }
    return sum;
  }
};

template <class Grid>
void sum_filter_shares(Grid& grid, const FilterSum& sum) {
  constexpr const char* name = "conv2d_backward_filter_sum";
  constexpr std::int64_t kFew = 8, kSome = 64;
  const auto run = [&]<int kSummands>(FilterTreeSum<kSummands> tree) {
    grid.run_blocks(name, (sum.count + tree.kWide - 1) / tree.kWide, tree);
  };
  if (sum.shares <= kFew) return grid.for_each(name, sum.count, sum);
  if (sum.shares <= kSome) return run(FilterTreeSum<8>{sum});
  run(FilterTreeSum<32>{sum});
}

/// Calls launch(tile) with the tile whose sums, those beyond the matrix too, take the least time.
template <class Launch>
void with_filter_tile(std::int64_t outputs, std::int64_t elements, const Launch& launch) {
  const auto cost = [&]<class Tile>(Tile, double share_of_peak) {
    const auto whole = [](std::int64_t n, std::int64_t tile) {
      return (n + tile - 1) / tile * tile;
    };
    return static_cast<double>(whole(outputs, Tile::kOutputs) * whole(elements, Tile::kElements)) /
           share_of_peak;
  };
  // Of the multiply-adds that a GPU could do in that time: bench/sass_counts.
  const double large = cost(LargeFilterTile{}, 0.74), middle = cost(MiddleFilterTile{}, 0.63),
               small = cost(SmallFilterTile{}, 0.36);
  if (large <= middle && large <= small) return launch(LargeFilterTile{});
  if (middle <= small) return launch(MiddleFilterTile{});
  launch(SmallFilterTile{});
}

template <class T, class Tile, class Grid>
void filter_gradient(Grid& grid, const Conv2dSpec& spec, const ConstView& x, const ConstView& dy,
                     float beta, const View& dw) {
  using Program = FilterProducts<T, Tile>;
  const Shape &in = x.shape(), &out = dy.shape(), &filter = dw.shape();
  const std::int64_t outputs = filter[0] / spec.groups, elements = filter.count_per_sample();
  const std::int64_t pixels = out[2] * out[3];
  const FilterPlan plan =
      FilterPlan::of(Tile{}, spec.groups, outputs, elements, out[0] * pixels, Program::kDepth);
  auto* const partial = grid.template workspace_of<float>(plan.shares * dw.count());
  const Program program{plan,
                        spec,
                        Divisor(plan.output_tiles),
                        Divisor(plan.element_tiles),
                        Divisor(spec.groups),
                        Divisor(pixels),
                        Divisor(out[3]),
                        static_cast<std::int32_t>(in[2]),
                        static_cast<std::int32_t>(in[3]),
                        out[0] * pixels,
                        outputs,
                        elements,
                        Divisor(filter[1]),
                        Divisor(filter[3]),
                        Divisor(filter[2] * filter[3]),
                        x.layout() == Layout::nhwc,
                        dw.layout() == Layout::nhwc,
                        FilterStrides::of(out, dy.layout()),
                        FilterStrides::of(in, x.layout()),
                        dy.as<T>(),
                        x.as<T>(),
                        partial};
  const std::int64_t tiles = spec.groups * plan.output_tiles * plan.element_tiles;
  grid.run_turns("conv2d_backward_filter_products", plan.shares * tiles, program);
  sum_filter_shares(grid, {partial, dw.count(), plan.shares, beta, dw.f32()});
}

/// Whether the samples are small enough for numbers of 32 bits, as they are above.
inline bool takes_filter_gradient(const ConstView& x, const ConstView& dy) {
  constexpr std::int64_t kMost = std::int64_t{1} << 30;  // a share's pixels are added to them
  return x.shape().count_per_sample() < kMost && dy.shape().count_per_sample() < kMost;
}

/// Of what takes_filter_gradient(). Floor: 2 flops for each product (kernels/conv2d.h counts them).
template <class Grid>
void conv2d_backward_filter(Grid&& grid, const Conv2dSpec& spec, const ConstView& x,
                            const ConstView& dy, float beta, const View& dw) {
  if (dw.count() == 0) return;
  if (x.shape()[0] == 0) {
    return sum_filter_shares(grid, {nullptr, dw.count(), 0, beta, dw.f32()});
  }
  reduction::visit_activations(x.dtype(), [&]<class T>(T) {
    with_filter_tile(
        dw.shape()[0] / spec.groups, dw.shape().count_per_sample(),
        [&]<class Tile>(Tile) { filter_gradient<T, Tile>(grid, spec, x, dy, beta, dw); });
  });
}

}  // namespace ringlet::grid
