// The gradient of a convolution's filters (kernels/conv2d.h) from bf16 and f16, by tensor cores:
// sums in f32, with the same bits in every run. cuDNN's engines for it round the sum to the type
// of the factors, or read factors widened to f32, at half of the speed and twice the bytes.
//
// As in filter_gradient.h it is a product of matrices over the pixels of all samples, of which a
// block adds up a tile over its share; what the blocks found is added up in double behind it. Here
// images are in nhwc, so eight neighbouring elements of a filter are eight channels of one pixel:
// sixteen bytes, that go from the images to shared memory by themselves while the turns before are
// multiplied. Images with other numbers of channels are copied first, with zeros behind their
// channels.
#pragma once

#include <algorithm>
#include <cstdint>
#include <limits>

#include "kernels/conv2d.h"
#include "kernels/grid/divisor.h"
#include "kernels/grid/filter_gradient.h"
#include "kernels/grid/grid.h"
#include "kernels/grid/tensor_cores.h"

namespace ringlet::grid {

/// The tile of a block (o, n), the pixels of a turn, the tile of a warp, turns that are in shared
/// memory at once, and the blocks that a multiprocessor is to have room for.
template <int kTileOutputs, int kTileElements, int kTurnPixels, int kWarpOutputs, int kWarpElements,
          int kTurns, int kBlocks>
struct TensorTile {
  static constexpr int kOutputs = kTileOutputs, kElements = kTileElements, kDepth = kTurnPixels;
  static constexpr int kRows = kWarpOutputs, kColumns = kWarpElements;
  static constexpr int kStages = kTurns, kResident = kBlocks;
  static constexpr int kWarpsDown = kOutputs / kRows;
  static constexpr int kThreads = kWarpsDown * (kElements / kColumns) * kWarp;
};
/// The fastest of seventeen on an H100 for up to 64 outputs, and for more (docs/precision.md).
using FewOutputsTile = TensorTile<64, 192, 32, 64, 32, 4, 2>;
using ManyOutputsTile = TensorTile<128, 128, 64, 64, 32, 3, 2>;

/// y[pixel][kept channels] = x[pixel][channels] and zeros, in nhwc.
template <class T>
struct PadChannels {
  static constexpr int kChunk = 16 / static_cast<int>(sizeof(T));
  Divisor chunks;  // of a pixel of y
  std::int32_t channels = 0;
  const T* x = nullptr;
  T* y = nullptr;

  /// i counts the chunks of y.
  RINGLET_HOST_DEVICE void operator()(std::int64_t i) const {
    const std::int64_t pixel = chunks.quotient(i);
    const auto first = static_cast<std::int32_t>(i - pixel * chunks.divisor()) * kChunk;
    const T* const from = x + pixel * channels + first;
    Pack<T, kChunk> pack;
    RINGLET_UNROLLED
    for (int e = 0; e < kChunk; ++e) pack[e] = first + e < channels ? from[e] : T{};
    reinterpret_cast<Pack<T, kChunk>*>(y)[i] = pack;
  }
};

/// How the pixels are cut. It follows from the shapes alone, and so do the bits.
struct TensorPlan {
  std::int64_t output_tiles = 1, element_tiles = 1, shares = 1;
  std::int32_t turns_a_share = 0;

  template <class Tile>
  static TensorPlan of(Tile, std::int64_t outputs, std::int64_t elements, std::int64_t pixels) {
    // Of an H100, roughly: so many blocks at once, multiply-adds and bytes of sums a second.
    constexpr std::int64_t kAtOnce = std::int64_t{132} * Tile::kResident;
    constexpr double kRate = 140e12, kBytes = 2.5e12, kStart = 2e-6;
    constexpr std::int64_t kFewestTurns = 4;  // or starting would take longer
    const auto parts = [](std::int64_t n, std::int64_t of) { return (n + of - 1) / of; };
    TensorPlan plan;
    plan.output_tiles = parts(outputs, Tile::kOutputs);
    plan.element_tiles = parts(elements, Tile::kElements);
    const std::int64_t tiles = plan.output_tiles * plan.element_tiles;
    const std::int64_t turns = parts(pixels, Tile::kDepth);
    const double turn =
        static_cast<double>(kAtOnce * Tile::kOutputs * Tile::kElements) * Tile::kDepth / kRate;
    const double sums = 2.0 * sizeof(float) * static_cast<double>(outputs * elements) / kBytes;
    const std::int64_t most = std::min(parts(4 * kAtOnce, tiles), parts(turns, kFewestTurns));
    double least = std::numeric_limits<double>::infinity();
    for (std::int64_t shares = 1; shares <= most; ++shares) {
      const std::int64_t a_share = parts(turns, shares);
      const auto rounds = static_cast<double>(parts(tiles * parts(turns, a_share), kAtOnce));
      const double cost = rounds * (kStart + static_cast<double>(a_share) * turn) +
                          static_cast<double>(parts(turns, a_share)) * sums;
      if (cost >= least) continue;
      least = cost;
      plan.turns_a_share = static_cast<std::int32_t>(a_share);
      plan.shares = parts(turns, a_share);
    }
    return plan;
  }
};

/// partial[share][o][n] of each tile.
template <class T, class Tile>
struct TensorProducts {
  static constexpr int kThreads = Tile::kThreads, kResident = Tile::kResident;
  static constexpr int kStages = Tile::kStages, kDepth = Tile::kDepth;

  struct Stage {
    Slab<T, kDepth, Tile::kOutputs> dy;
    Slab<T, kDepth, Tile::kElements> x;
  };
  struct State {
    WarpSums<Tile::kRows, Tile::kColumns> sums;
    const T* dy;               // the thread's chunk of a row, at pixel 0
    const T* x;                // its channels there
    std::int32_t row, column;  // where its element of a filter looks, seen from the pixel's corner
    std::int32_t first, last;  // pixels of the share
    bool has_dy, has_x;        // whether the chunk is one of the matrix
  };

  TensorPlan plan;
  Conv2dSpec spec;
  Divisor output_tiles, element_tiles;
  Divisor pixels, width;  // of an output image
  std::int32_t height_in = 0, width_in = 0;
  std::int32_t all_pixels = 0;  // of all samples
  std::int32_t outputs = 0, elements = 0;
  Divisor channels, window_width;    // channels of x, some of which dw may not have
  std::int32_t window = 0;           // taps
  std::int32_t own_channels = 0;     // of dw
  bool filter_channels_last = true;  // in dw
  const T* dy = nullptr;
  const T* x = nullptr;
  float* partial = nullptr;

  struct Place {
    std::int64_t share;
    std::int32_t first_output, first_element;
  };
  RINGLET_HOST_DEVICE Place place(std::int64_t block) const {
    const auto number = static_cast<std::int32_t>(block);
    const std::int32_t column = element_tiles.quotient(number);
    const std::int32_t share = output_tiles.quotient(column);
    return {
        share,
        (column - share * static_cast<std::int32_t>(output_tiles.divisor())) * Tile::kOutputs,
        (number - column * static_cast<std::int32_t>(element_tiles.divisor())) * Tile::kElements};
  }
  RINGLET_HOST_DEVICE std::int32_t turns(std::int64_t block) const {
    const auto share = static_cast<std::int32_t>(place(block).share);
    const std::int32_t left = (all_pixels + kDepth - 1) / kDepth - share * plan.turns_a_share;
    return left < plan.turns_a_share ? left : plan.turns_a_share;
  }

  RINGLET_HOST_DEVICE void begin(const ThreadIndex& index, State& state) const {
    const Place at = place(index.block);
    state.sums.clear();
    const std::int32_t output = at.first_output + of_dy(index.thread).chunk * kChunk;
    const std::int32_t element = at.first_element + of_x(index.thread).chunk * kChunk;
    state.has_dy = output < outputs;
    state.has_x = element < elements;
    state.dy = dy + (state.has_dy ? output : 0);
    const std::int32_t tap = channels.quotient(state.has_x ? element : 0);
    const std::int32_t tap_row = window_width.quotient(tap);
    state.x =
        x + ((state.has_x ? element : 0) - tap * static_cast<std::int32_t>(channels.divisor()));
    state.row = tap_row * spec.dilation.h - spec.padding.h;
    state.column =
        (tap - tap_row * static_cast<std::int32_t>(window_width.divisor())) * spec.dilation.w -
        spec.padding.w;
    state.first = static_cast<std::int32_t>(at.share) * plan.turns_a_share * kDepth;
    const std::int32_t left = all_pixels - state.first, most = plan.turns_a_share * kDepth;
    state.last = state.first + (left < most ? left : most);
  }

  /// Zeros outside of the image, of the matrix and behind the share's last pixel.
  RINGLET_HOST_DEVICE void fetch(std::int32_t turn, const ThreadIndex& index, Stage& stage,
                                 const State& state) const {
    const std::int32_t begin = state.first + turn * kDepth;
    const Bringing bring_dy = of_dy(index.thread), bring_x = of_x(index.thread);
    RINGLET_UNROLLED
    for (int i = 0; i < rounds(Tile::kOutputs); ++i) {
      const int row = bring_dy.row + i * step(Tile::kOutputs);
      if (kDepth % step(Tile::kOutputs) != 0 && row >= kDepth) continue;
      const std::int32_t k = begin + row;
      const bool is_there = state.has_dy & (k < state.last);
      copy_chunk(stage.dy.chunk(row, bring_dy.chunk),
                 state.dy + (is_there ? std::int64_t{k} * outputs : 0), is_there);
    }
    RINGLET_UNROLLED
    for (int i = 0; i < rounds(Tile::kElements); ++i) {
      const int row = bring_x.row + i * step(Tile::kElements);
      if (kDepth % step(Tile::kElements) != 0 && row >= kDepth) continue;
      const std::int32_t k = begin + row;
      const std::int32_t sample = pixels.quotient(k);
      const std::int32_t pixel = k - sample * static_cast<std::int32_t>(pixels.divisor());
      const std::int32_t out_row = width.quotient(pixel);
      const std::int32_t out_column = pixel - out_row * static_cast<std::int32_t>(width.divisor());
      const std::int32_t in_row = out_row * spec.stride.h + state.row;
      const std::int32_t in_column = out_column * spec.stride.w + state.column;
      const bool is_there =
          state.has_x & (k < state.last) &
          (static_cast<std::uint32_t>(in_row) < static_cast<std::uint32_t>(height_in)) &
          (static_cast<std::uint32_t>(in_column) < static_cast<std::uint32_t>(width_in));
      const std::int32_t from = (sample * height_in + in_row) * width_in + in_column;
      copy_chunk(stage.x.chunk(row, bring_x.chunk),
                 state.x + (is_there ? from * channels.divisor() : 0), is_there);
    }
  }

  RINGLET_HOST_DEVICE void work(const ThreadIndex& index, const Stage& stage, State& state) const {
    const Place at = place(index.block);
    const int row = warp_row(index.thread), column = warp_column(index.thread);
    state.sums.add(stage.dy, row, stage.x, column, index.thread % kWarp,
                   outputs - at.first_output - row, elements - at.first_element - column);
  }

  RINGLET_HOST_DEVICE void end(const ThreadIndex& index, const State& state) const {
    const Place at = place(index.block);
    const std::int32_t row = at.first_output + warp_row(index.thread);
    const std::int32_t column = at.first_element + warp_column(index.thread);
    const std::int64_t own_elements = std::int64_t{window} * own_channels;
    float* const share = partial + at.share * outputs * own_elements;
    const bool as_they_are = filter_channels_last && own_elements == elements;
    state.sums.for_each_pair(index.thread % kWarp, [&](int m, int n, const float* pair) {
      if (row + m >= outputs || column + n >= elements) return;
      float* const filter = share + (row + m) * own_elements;
      if (as_they_are) {
        struct alignas(8) Pair {
          float first, second;
        };
        *reinterpret_cast<Pair*>(filter + column + n) = {pair[0], pair[1]};
        return;
      }
      const std::int32_t tap = channels.quotient(column + n);
      const std::int32_t channel = column + n - tap * static_cast<std::int32_t>(channels.divisor());
      RINGLET_UNROLLED
      for (int e = 0; e < 2; ++e) {
        const std::int32_t c = channel + e;
        if (c >= own_channels) continue;
        filter[filter_channels_last ? tap * own_channels + c : c * window + tap] = pair[e];
      }
    });
  }

 private:
  static constexpr int kChunk = Slab<T, kDepth, Tile::kOutputs>::kChunk;

  /// A thread brings one chunk of rows row, row + step, ...
  struct Bringing {
    int row, chunk;
  };
  RINGLET_HOST_DEVICE static constexpr int step(int columns) {
    return kThreads / (columns / kChunk);
  }
  RINGLET_HOST_DEVICE static constexpr int rounds(int columns) {
    return (kDepth + step(columns) - 1) / step(columns);
  }
  static_assert(kThreads % (Tile::kOutputs / kChunk) == 0 &&
                kThreads % (Tile::kElements / kChunk) == 0);
  RINGLET_HOST_DEVICE static Bringing of_dy(int thread) {
    return {thread / (Tile::kOutputs / kChunk), thread % (Tile::kOutputs / kChunk)};
  }
  RINGLET_HOST_DEVICE static Bringing of_x(int thread) {
    return {thread / (Tile::kElements / kChunk), thread % (Tile::kElements / kChunk)};
  }
  RINGLET_HOST_DEVICE static int warp_row(int thread) {
    return thread / kWarp % Tile::kWarpsDown * Tile::kRows;
  }
  RINGLET_HOST_DEVICE static int warp_column(int thread) {
    return thread / kWarp / Tile::kWarpsDown * Tile::kColumns;
  }
};

/// Whether narrow_filter_gradient() takes these. Where images have to be copied and outputs are
/// few, as in LeNet, cuDNN is as fast.
inline bool takes_narrow_filter_gradient(const Conv2dSpec& spec, const ConstView& x,
                                         const ConstView& dy) {
  constexpr std::int64_t kMost = std::numeric_limits<std::int32_t>::max() / 2, kFewOutputs = 32;
  const Shape &in = x.shape(), &out = dy.shape();
  return is_narrow(x.dtype()) && x.layout() == Layout::nhwc && dy.layout() == Layout::nhwc &&
         spec.groups == 1 && out[1] % 8 == 0 && (in[1] % 8 == 0 || out[1] >= kFewOutputs) &&
         reinterpret_cast<std::uintptr_t>(x.data()) % 16 == 0 &&
         reinterpret_cast<std::uintptr_t>(dy.data()) % 16 == 0 && in[0] * in[2] * in[3] < kMost &&
         out[0] * out[2] * out[3] < kMost;
}

template <class T, class Tile, class Grid>
void narrow_filter_gradient(Grid& grid, const Conv2dSpec& spec, const ConstView& x,
                            const ConstView& dy, float beta, const View& dw) {
  constexpr const char* name = "conv2d_backward_filter_narrow";
  constexpr std::int64_t kChunk = PadChannels<T>::kChunk, kAlignment = 64;  // of floats
  const Shape &in = x.shape(), &out = dy.shape(), &filter = dw.shape();
  const std::int64_t pixels = out[2] * out[3], window = filter[2] * filter[3];
  const std::int64_t chunks = (in[1] + kChunk - 1) / kChunk, channels = chunks * kChunk;
  const std::int64_t in_pixels = in[0] * in[2] * in[3];
  const TensorPlan plan = TensorPlan::of(Tile{}, filter[0], window * channels, out[0] * pixels);
  const std::int64_t sums = (plan.shares * dw.count() + kAlignment - 1) / kAlignment * kAlignment;
  const bool pads = channels != in[1];
  auto* const partial = grid.template workspace_of<float>(
      sums + (pads ? in_pixels * channels * std::int64_t{sizeof(T)} / std::int64_t{4} : 0));
  const T* images = x.as<T>();
  if (pads) {
    auto* const padded = reinterpret_cast<T*>(partial + sums);
    grid.for_each(
        name, in_pixels * chunks,
        PadChannels<T>{Divisor(chunks), static_cast<std::int32_t>(in[1]), images, padded});
    images = padded;
  }
  const TensorProducts<T, Tile> program{plan,
                                        spec,
                                        Divisor(plan.output_tiles),
                                        Divisor(plan.element_tiles),
                                        Divisor(pixels),
                                        Divisor(out[3]),
                                        static_cast<std::int32_t>(in[2]),
                                        static_cast<std::int32_t>(in[3]),
                                        static_cast<std::int32_t>(out[0] * pixels),
                                        static_cast<std::int32_t>(filter[0]),
                                        static_cast<std::int32_t>(window * channels),
                                        Divisor(channels),
                                        Divisor(filter[3]),
                                        static_cast<std::int32_t>(window),
                                        static_cast<std::int32_t>(in[1]),
                                        dw.layout() == Layout::nhwc,
                                        dy.as<T>(),
                                        images,
                                        partial};
  grid.run_pipeline(name, plan.shares * plan.output_tiles * plan.element_tiles, program);
  sum_filter_shares(grid, {partial, dw.count(), plan.shares, beta, dw.f32()});
}

/// conv2d_backward_filter() of what takes_narrow_filter_gradient(), and one sample or more.
template <class Grid>
void narrow_filter_gradient(Grid&& grid, const Conv2dSpec& spec, const ConstView& x,
                            const ConstView& dy, float beta, const View& dw) {
  const auto run = [&]<class T>(T) {
    if (dw.shape()[0] <= FewOutputsTile::kOutputs) {
      narrow_filter_gradient<T, FewOutputsTile>(grid, spec, x, dy, beta, dw);
    } else {
      narrow_filter_gradient<T, ManyOutputsTile>(grid, spec, x, dy, beta, dw);
    }
  };
  if (x.dtype() == DType::bf16) return run(BFloat16{});
  run(Half{});
}

}  // namespace ringlet::grid
