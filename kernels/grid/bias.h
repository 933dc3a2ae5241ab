// The kernels of kernels/bias.h, for nchw and nhwc.
#pragma once

#include <algorithm>
#include <type_traits>

#include "kernels/elements.h"
#include "kernels/grid/divisor.h"
#include "kernels/grid/grid.h"
#include "kernels/grid/pack.h"
#include "kernels/grid/pool2d_backward.h"
#include "kernels/tensor.h"

namespace ringlet::grid {

/// The shape in which a channel is a dimension of rows: a tensor in nhwc lies in memory as the
/// matrix [N H W, C] does in nchw, so that what goes over channels has one code for both.
inline Shape channel_shape(const ConstView& x) {
  const Shape& shape = x.shape();
  if (x.layout() != Layout::nhwc) return shape;
  return {shape[0] * shape[2] * shape[3], shape[1]};
}

inline std::int64_t pixels_per_channel(const Shape& shape) {
  return shape.rank() == 4 ? shape[2] * shape[3] : 1;
}

/// I is the type of indices, as in pool_geometry.h.
template <class T, class I>
struct BiasForward {
  Divisor pixels;
  Divisor channels;
  const T* x = nullptr;
  const float* b = nullptr;
  T* y = nullptr;
  static constexpr int kPack = kPackOf<T>;

  bool takes_packs() const { return grid::takes_packs<kPack>(x, y); }
  template <int kWidth>
  RINGLET_HOST_DEVICE void apply(std::int64_t pack) const {
    auto values = load_pack<kWidth>(x, pack);
    for (int i = 0; i < kWidth; ++i) {
      values[i] += b[channels.remainder(pixels.quotient(static_cast<I>(kWidth * pack + i)))];
    }
    store_pack(y, pack, values);
  }
};

/// Floor: reads 4 N bytes, writes 4 N.
template <class Grid>
void bias_forward(Grid&& grid, const ConstView& x, const ConstView& b, const View& y) {
  if (x.count() == 0) return;
  const Shape shape = channel_shape(x);
  reduction::visit_activations(x.dtype(), [&]<class T>(T) {
    with_index_of(shape, [&]<class I>(I) {
      grid.for_each_pack("bias_forward", x.count(),
                         BiasForward<T, I>{Divisor(pixels_per_channel(shape)), Divisor(shape[1]),
                                           x.as<T>(), b.f32(), y.as<T>()});
    });
  });
}

inline constexpr int kMultiprocessors = 132;  // of an H100

/// Cuts N samples, with `units` of a channel's work each, among the blocks of a team. How it is cut
/// follows from the shapes alone, so the same gradients have the same sum on every GPU. A block's
/// share of what fits into a GPU has far fewer than 2^31 units.
struct ChannelSumPlan {
  std::int64_t samples = 0;
  std::int64_t samples_per_block = 1;
  std::int64_t team_size = 1;

  /// `rows`: threads of a block that work on the same channel. `blocks`: about as many in all.
  ChannelSumPlan(std::int64_t sample_count, std::int64_t units, std::int64_t teams, int rows,
                 int blocks)
      : samples(sample_count) {
    const std::int64_t fewest = (rows + units - 1) / units;  // something for every thread
    const std::int64_t wanted = std::max<std::int64_t>(1, blocks / teams);
    samples_per_block = std::max(fewest, (samples + wanted - 1) / wanted);
    team_size = std::max<std::int64_t>(1, (samples + samples_per_block - 1) / samples_per_block);
  }
};

/// How rows, in which channels lie side by side in memory, are dealt out: bytes of a row that are a
/// thread's, where the row is whole packs of them, and bytes that are at most a team's. A narrow
/// channel alone is too few bytes for what it takes to find it.
struct RowShares {
  int thread = 4, team = 32;
};
inline constexpr int kSector = 32;  // bytes that memory gives at least

/// Sums over the samples and units of each channel. A source says what is summed, as Source::Sum:
///
///   channel(c)                                   what it has to know of channel c, asked once
///   read(plane, unit)                            what it reads of memory, a Source::Loaded
///   add(of_channels, plane, unit, loaded, sums)  called once for each; may write
///   finish(c, sum)
///
/// Plane n * channels + c has channel c of sample n.
///
/// A multiprocessor has kResident blocks of it at once (three of up to 80 registers a thread, four
/// of up to 64, five of up to 48: bench/sass_counts knows). A team's blocks are as many as all of
/// an H100 then have: with more, the last ones would have the GPU to themselves.
///
/// A thread asks for kAhead units before it adds the first one. Otherwise it would wait for each:
/// some 20 KB on their way to each multiprocessor keep half of an H200's memory busy.
///
/// A thread has Source::kChannels neighbouring channels, whose numbers come as a pack. A team has
/// kColumns threads beside each other in a sample: those of RowShares where the channels lie side
/// by side in memory, and 1 where a plane of pixels does.
template <int kColumns, class Source>
struct ChannelSums : TeamSum<ChannelSums<kColumns, Source>,
                             Pack<typename Source::Sum, Source::kChannels>, kColumns> {
  static constexpr int kChannels = Source::kChannels;
  static constexpr int kResident = Source::kResident;
  static constexpr bool kOneUnit = kColumns > 1;  // where channels lie side by side
  using Sums = Pack<typename Source::Sum, kChannels>;
  using Base = TeamSum<ChannelSums, Sums, kColumns>;

  ChannelSumPlan plan;
  std::int64_t channels = 0;
  Divisor units;
  Source source;

  RINGLET_HOST_DEVICE Sums share(const ThreadIndex& index) const {
    const std::int64_t team = this->team_size.quotient(index.block);
    const std::int64_t first =
        (index.block - team * this->team_size.divisor()) * plan.samples_per_block;
    const std::int64_t channel = (team * kColumns + index.thread % kColumns) * kChannels;
    Sums total{};
    if (channel >= channels) return total;
    const std::int64_t samples = std::min(plan.samples - first, plan.samples_per_block);
    const auto end = static_cast<std::int32_t>(samples * units.divisor());
    decltype(source.channel(channel)) of_channels[kChannels];
    for (int k = 0; k < kChannels; ++k) of_channels[k] = source.channel(channel + k);
    std::int32_t i = index.thread / kColumns;
    RINGLET_ROLLED
    for (; i < end - (Source::kAhead - 1) * Base::kRows; i += Source::kAhead * Base::kRows) {
      add_ahead<Source::kAhead>(of_channels, first * channels + channel, i, total);
    }
    RINGLET_ROLLED
    for (; i < end; i += Base::kRows) {
      add_ahead<1>(of_channels, first * channels + channel, i, total);
    }
    return total;
  }
  /// Adds units i, i + kRows, ..., kAhead of them, of planes from `plane` on.
  template <int kAhead, class OfChannel>
  RINGLET_HOST_DEVICE void add_ahead(const OfChannel* of_channels, std::int64_t plane,
                                     std::int32_t i, Sums& total) const {
    typename Source::Loaded loaded[kAhead];
    std::int64_t planes[kAhead];
    std::int32_t unit[kAhead];
    for (int k = 0; k < kAhead; ++k) {
      const std::int32_t at = i + k * Base::kRows;
      const std::int32_t n = kOneUnit ? at : units.quotient(at);
      planes[k] = plane + n * channels;
      unit[k] = kOneUnit ? 0 : at - n * static_cast<std::int32_t>(units.divisor());
      loaded[k] = source.read(planes[k], unit[k]);
    }
    for (int k = 0; k < kAhead; ++k) {
      source.add(of_channels, planes[k], unit[k], loaded[k], total);
    }
  }
  RINGLET_HOST_DEVICE void finish(std::int64_t column, const Sums& sums) const {
    const std::int64_t first = column * kChannels;
    if (first >= channels) return;
    for (int k = 0; k < kChannels; ++k) source.finish(first + k, sums[k]);
  }
};

template <int kColumns, class Grid, class Source>
void launch_channel_sums(Grid& grid, const char* name, const Shape& shape, std::int64_t units,
                         const Source& source) {
  using Program = ChannelSums<kColumns, Source>;
  constexpr std::int64_t kOfTeam = kColumns * Source::kChannels;
  const std::int64_t channels = shape[1], teams = (channels + kOfTeam - 1) / kOfTeam;
  if (teams == 0) return;
  const std::int64_t at_least_one = std::max<std::int64_t>(1, units);
  const ChannelSumPlan plan(shape.count() == 0 ? 0 : shape[0], at_least_one, teams, Program::kRows,
                            Source::kResident * kMultiprocessors);
  auto* partial =
      grid.template workspace_of<typename Program::Sums>(teams * plan.team_size * kColumns);
  grid.run_teams(
      name, teams,
      Program{{Divisor(plan.team_size), partial}, plan, channels, Divisor(at_least_one), source});
}

/// What sources in ChannelSums have ahead that only read and add: 16 bytes of each tensor, as far
/// as there are registers.
template <class T, int kWidth>
inline constexpr int kUnitsAhead = std::min(4, 16 / (kWidth * static_cast<int>(sizeof(T))));

/// db[c] = beta * db[c] + sum of source(n * channels + c, unit, loaded).
template <class Source>
struct BiasSums {
  static constexpr int kChannels = Source::kChannels, kAhead = Source::kAhead, kResident = 5;
  using Loaded = typename Source::Loaded;
  using Sum = double;
  struct Nothing {};
  Source source;
  float beta = 0;
  float* db = nullptr;  // may be null

  RINGLET_HOST_DEVICE Nothing channel(std::int64_t) const { return {}; }
  RINGLET_HOST_DEVICE Loaded read(std::int64_t plane, std::int32_t unit) const {
    return source.read(plane, unit);
  }
  RINGLET_HOST_DEVICE void add(const Nothing*, std::int64_t plane, std::int32_t unit,
                               const Loaded& loaded, Pack<double, kChannels>& total) const {
    total = total + source(plane, unit, loaded);
  }
  RINGLET_HOST_DEVICE void finish(std::int64_t c, double sum) const {
    if (db != nullptr) db[c] = element::blend(beta, db[c], static_cast<float>(sum));
  }
};

template <class Source>
BiasSums<Source> bias_sums(const Source& source, float beta, const View& db) {
  return {source, beta, db.absent() ? nullptr : db.f32()};
}

// The sources below read packs of kWidth elements: pixels of a channel, or a pixel's neighbouring
// channels (kChannels = kWidth).

/// dy as it is.
template <class T, int kWidth, int kOfChannels = 1>
struct Gradient {
  static constexpr int kChannels = kOfChannels, kAhead = kUnitsAhead<T, kWidth>;
  using Loaded = Pack<float, kWidth>;
  const T* dy;
  std::int64_t pixels;

  RINGLET_HOST_DEVICE Loaded read(std::int64_t plane, std::int32_t unit) const {
    return load_pack<kWidth>(dy + plane * pixels, unit);
  }
  RINGLET_HOST_DEVICE Pack<double, kChannels> operator()(std::int64_t, std::int32_t,
                                                         const Loaded& values) const {
    Pack<double, kChannels> sums{};
    for (int i = 0; i < kWidth; ++i) sums[i % kChannels] += static_cast<double>(values[i]);
    return sums;
  }
};

/// dz = dy * [a > 0], on the way.
template <class T, int kWidth, int kOfChannels = 1>
struct RectifiedGradient {
  static constexpr int kChannels = kOfChannels, kAhead = kUnitsAhead<T, kWidth>;
  struct Loaded {
    Pack<float, kWidth> activations, gradient;
  };
  const T* a;
  const T* dy;
  T* dz;
  std::int64_t pixels;

  RINGLET_HOST_DEVICE Loaded read(std::int64_t plane, std::int32_t unit) const {
    return {load_pack<kWidth>(a + plane * pixels, unit),
            load_pack<kWidth>(dy + plane * pixels, unit)};
  }
  RINGLET_HOST_DEVICE Pack<double, kChannels> operator()(std::int64_t plane, std::int32_t unit,
                                                         const Loaded& loaded) const {
    Pack<float, kWidth> values = loaded.gradient;
    Pack<double, kChannels> sums{};
    for (int i = 0; i < kWidth; ++i) {
      values[i] = element::relu_gradient(loaded.activations[i], values[i]);
      sums[i % kChannels] += static_cast<double>(values[i]);
    }
    store_pack(dz + plane * pixels, unit, values);
    return sums;
  }
};

/// a = (a quarter of dy) * [a > 0], for the windows of the pooling behind the ReLU.
template <class T, int kWidth>
struct RectifiedAverageGradient {
  static constexpr int kChannels = 1, kAhead = 1;
  struct Loaded {};
  PoolGeometry<std::int32_t> g;  // of one plane
  const T* dy = nullptr;
  T* a = nullptr;
  std::int64_t pixels = 0, outputs = 0;

  struct Spread {
    float share;
    RINGLET_HOST_DEVICE bool reads() const { return true; }
    RINGLET_HOST_DEVICE float operator()(std::int32_t, float activation) const {
      return element::relu_gradient(activation, share);
    }
    RINGLET_HOST_DEVICE float outside(float) const { return 0; }
  };

  RINGLET_HOST_DEVICE Loaded read(std::int64_t, std::int32_t) const { return {}; }
  RINGLET_HOST_DEVICE Pack<double, 1> operator()(std::int64_t plane, std::int32_t unit,
                                                 Loaded) const {
    const std::int32_t row = g.w.outputs.quotient(unit);
    const PlanePoint<std::int32_t> at{0, row, unit - row * g.w.output_count()};
    return {for_window<kWidth>(g, at, a + plane * pixels,
                               // The sum with 0 is what pooling writes: it turns -0 into 0.
                               Spread{0.0F + 0.25F * load(dy[plane * outputs + unit])})};
  }
};

/// How a thread reads a tensor: packs of kWidth elements, of kChannels neighbouring channels, in a
/// team of kColumns such threads beside each other.
template <int kPackWidth, int kOfChannels, int kOfTeam>
struct Reading {
  static constexpr int kWidth = kPackWidth, kChannels = kOfChannels, kColumns = kOfTeam;
};

/// launch(reading) with packs of kPack channels and the widest team, from kBytes down to a sector,
/// whose threads all have channels.
template <class T, int kPack, int kBytes, class Launch>
void with_team_of(std::int64_t channels, const Launch& launch) {
  constexpr int kOfTeam = kBytes / static_cast<int>(sizeof(T));
  if constexpr (kBytes > kSector) {
    if (channels % kOfTeam != 0) return with_team_of<T, kPack, kBytes / 2>(channels, launch);
  }
  launch(Reading<kPack, kPack, kOfTeam / kPack>{});
}

/// launch(reading) for rows [N, C] of `data`, in which channels lie side by side.
template <RowShares kShares = RowShares{}, class Launch, class T, class... Others>
void with_channels_of(std::int64_t channels, const Launch& launch, const T* data,
                      const Others*... others) {
  constexpr int kAtOnce = kShares.thread / static_cast<int>(sizeof(T));
  if (channels % kAtOnce == 0 && takes_packs<kAtOnce>(data, others...)) {
    with_team_of<T, kAtOnce, kShares.team>(channels, launch);
  } else {
    with_team_of<T, 1, kSector>(channels, launch);
  }
}

/// launch(reading) for planes of so many pixels of `data`.
template <class Launch, class T, class... Others>
void with_pixels_of(std::int64_t pixels, const Launch& launch, const T* data,
                    const Others*... others) {
  constexpr int kAtOnce = kPackOf<T>;
  if (pixels % kAtOnce == 0 && takes_packs<kAtOnce>(data, others...)) {
    launch(Reading<kAtOnce, 1, 1>{});
  } else {
    launch(Reading<1, 1, 1>{});
  }
}

/// launch(reading) for `data` of this shape.
template <RowShares kShares, class Launch, class... T>
void with_reading_of(const Shape& shape, const Launch& launch, const T*... data) {
  const std::int64_t pixels = pixels_per_channel(shape);
  if (pixels == 1) return with_channels_of<kShares>(shape[1], launch, data...);
  with_pixels_of(pixels, launch, data...);
}

/// Packs of a channel that a sample has.
template <class R>
std::int64_t units_of(const Shape& shape) {
  return pixels_per_channel(shape) * R::kChannels / R::kWidth;
}

/// Sums over the channels of `shape` of make(reading), a source that reads `data`.
template <RowShares kShares = RowShares{}, class Grid, class Make, class... T>
void sum_channels(Grid& grid, const char* name, const Shape& shape, const Make& make,
                  const T*... data) {
  const auto launch = [&]<class R>(R reading) {
    launch_channel_sums<R::kColumns>(grid, name, shape, units_of<R>(shape), make(reading));
  };
  with_reading_of<kShares>(shape, launch, data...);
}

/// Floor: reads 4 N bytes. Without samples, db = beta * db.
template <class Grid>
void bias_backward(Grid&& grid, const ConstView& dy, float beta, const View& db) {
  const Shape shape = channel_shape(dy);
  reduction::visit_activations(dy.dtype(), [&]<class T>(T) {
    const auto make = [&]<class R>(R) {
      return bias_sums(Gradient<T, R::kWidth, R::kChannels>{dy.as<T>(), pixels_per_channel(shape)},
                       beta, db);
    };
    sum_channels(grid, "bias_backward", shape, make, dy.as<T>());
  });
}

/// Floor: reads 8 N bytes, writes 4 N.
template <class Grid>
void bias_relu_backward(Grid&& grid, const ConstView& a, const ConstView& dy, const View& dz,
                        float beta, const View& db) {
  const Shape shape = channel_shape(dy);
  reduction::visit_activations(dy.dtype(), [&]<class T>(T) {
    const auto make = [&]<class R>(R) {
      const RectifiedGradient<T, R::kWidth, R::kChannels> source{a.as<T>(), dy.as<T>(), dz.as<T>(),
                                                                 pixels_per_channel(shape)};
      return bias_sums(source, beta, db);
    };
    sum_channels(grid, "bias_relu_backward", shape, make, a.as<T>(), dy.as<T>(),
                 static_cast<const T*>(dz.as<T>()));
  });
}

template <class T, class Grid>
void bias_relu_avg_pool2d_backward_nhwc(Grid& grid, const ConstView& dy, const View& a, float beta,
                                        const View& db) {
  const Shape rows = channel_shape(a);
  const auto launch = [&]<class R, bool kSideBySide>(R, std::bool_constant<kSideBySide>) {
    with_geometry({}, a.shape(), dy.shape(), [&]<class I>(const PoolGeometry<I>& g) {
      using Source = RectifiedAverageGradientNhwc<T, I, R::kChannels, kSideBySide>;
      launch_channel_sums<R::kColumns>(
          grid, "bias_relu_avg_pool2d_backward", rows, 1,
          bias_sums(Source{g, Divisor(rows[1]), dy.as<T>(), a.as<T>()}, beta, db));
    });
  };
  const auto with_order_of_dy = [&]<class R>(R reading) {
    if (dy.layout() == Layout::nhwc) {
      launch(reading, std::true_type{});
    } else {
      launch(reading, std::false_type{});
    }
  };
  with_channels_of(rows[1], with_order_of_dy, dy.as<T>(), static_cast<const T*>(a.as<T>()));
}

template <class T, int kWidth, class Grid>
void bias_relu_avg_pool2d_backward_nchw(Grid& grid, const ConstView& dy, const View& a, float beta,
                                        const View& db) {
  const std::int64_t outputs = pixels_per_channel(dy.shape());
  const RectifiedAverageGradient<T, kWidth> source{
      PoolGeometry<std::int32_t>({}, a.shape(), dy.shape()), dy.as<T>(), a.as<T>(),
      pixels_per_channel(a.shape()), outputs};
  launch_channel_sums<1>(grid, "bias_relu_avg_pool2d_backward", dy.shape(), outputs,
                         bias_sums(source, beta, db));
}

/// Floor: reads 4 bytes an output and 4 a pixel, writes 4 a pixel.
template <class Grid>
void bias_relu_avg_pool2d_backward(Grid&& grid, const ConstView& dy, const View& a, float beta,
                                   const View& db) {
  reduction::visit_activations(a.dtype(), [&]<class T>(T) {
    if (a.layout() == Layout::nhwc) {
      bias_relu_avg_pool2d_backward_nhwc<T>(grid, dy, a, beta, db);
    } else if (takes_pairs<T>(a)) {
      bias_relu_avg_pool2d_backward_nchw<T, 2>(grid, dy, a, beta, db);
    } else {
      bias_relu_avg_pool2d_backward_nchw<T, 1>(grid, dy, a, beta, db);
    }
  });
}

}  // namespace ringlet::grid
