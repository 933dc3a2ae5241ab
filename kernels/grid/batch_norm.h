// The kernels of kernels/batch_norm.h, for nchw and nhwc. Sums run in double about a value of the
// channel itself, so that one pass over memory is as good as two, and in the teams of grid/bias.h.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <type_traits>

#include "kernels/batch_norm.h"
#include "kernels/elements.h"
#include "kernels/grid/bias.h"
#include "kernels/grid/divisor.h"
#include "kernels/grid/elementwise.h"
#include "kernels/grid/grid.h"
#include "kernels/grid/pack.h"
#include "kernels/tensor.h"

namespace ringlet::grid {

/// Two sums of one channel.
struct SumPair {
  double first, second;
  RINGLET_HOST_DEVICE SumPair operator+(const SumPair& other) const {
    return {first + other.first, second + other.second};
  }
  RINGLET_HOST_DEVICE SumPair& operator+=(const SumPair& other) { return *this = *this + other; }
};

/// How the sums go over rows whose channels are whole packs: what was fastest on an H200 over rows
/// [262144, 64] and [16384, 256] together (sums_of_batch_norm in
/// bench/results/2026-11-27-h200-second.json). A thread has two channels. Teams of 128 bytes are
/// a gain in f32, above all where dz is written, and a loss where elements are narrow.
template <class T>
struct NormRows {
  static constexpr bool kNarrow = sizeof(T) < sizeof(float);
  static constexpr RowShares kShares = kNarrow ? RowShares{4, 32} : RowShares{8, 128};
  static constexpr int kResident = kNarrow ? 4 : 3;
  static constexpr int kAheadOfMoments = 4, kAheadOfSums = kNarrow ? 2 : 4;
};

/// Sums of d and d d, d being the distance from the channel's first value.
template <class T, int kWidth, int kOfChannels>
struct MomentSource {
  static constexpr int kChannels = kOfChannels;
  static constexpr int kAhead =
      kChannels > 1 ? NormRows<T>::kAheadOfMoments : kUnitsAhead<T, kWidth>;
  static constexpr int kResident = kChannels > 1 ? NormRows<T>::kResident : 5;
  using Sum = SumPair;
  using Loaded = Pack<float, kWidth>;
  const T* x;
  float* moments;
  std::int64_t pixels, channels;
  double count;

  RINGLET_HOST_DEVICE double channel(std::int64_t c) const {
    return static_cast<double>(load(x[c * pixels]));
  }
  RINGLET_HOST_DEVICE Loaded read(std::int64_t plane, std::int32_t unit) const {
    return load_pack<kWidth>(x + plane * pixels, unit);
  }
  RINGLET_HOST_DEVICE void add(const double* origins, std::int64_t, std::int32_t,
                               const Loaded& values, Pack<SumPair, kChannels>& totals) const {
    for (int i = 0; i < kWidth; ++i) {
      const double d = static_cast<double>(values[i]) - origins[i % kChannels];
      totals[i % kChannels] += {d, d * d};
    }
  }
  RINGLET_HOST_DEVICE void finish(std::int64_t c, const SumPair& sum) const {
    const bool any = count > 0;
    const double offset = any ? sum.first / count : 0;
    moments[c] = any ? static_cast<float>(channel(c) + offset) : 0.0F;
    const double squares = sum.second - offset * sum.first;
    moments[channels + c] = squares > 0 || squares != squares ? static_cast<float>(squares) : 0.0F;
  }
};

/// A channel's normalisation.
struct NormOfChannel {
  float mean, gain, bias;
  float factor;  // 1 / the deviation
};

struct NormParameters {
  const float* statistics = nullptr;
  const float* weight = nullptr;  // null for 1
  const float* bias = nullptr;    // null for 0
  std::int64_t channels = 0;
  float epsilon = 0, per_value = 0;  // 1 / count
  bool relu = false;

  NormParameters() = default;
  explicit NormParameters(const BatchNorm& norm)
      : statistics(norm.statistics.f32()),
        weight(norm.weight.absent() ? nullptr : norm.weight.f32()),
        bias(norm.bias.absent() ? nullptr : norm.bias.f32()),
        channels(norm.x.shape()[1]),
        epsilon(norm.epsilon),
        per_value(static_cast<float>(1 / norm.count)),
        relu(norm.activation == Activation::relu) {}

  RINGLET_HOST_DEVICE NormOfChannel channel(std::int64_t c) const {
    const float factor = 1.0F / std::sqrt(statistics[channels + c] * per_value + epsilon);
    return {statistics[c], (weight == nullptr ? 1.0F : weight[c]) * factor,
            bias == nullptr ? 0.0F : bias[c], factor};
  }
};

/// Rows [N, C] in which channels lie side by side. A thread has kWidth neighbouring channels of
/// several rows, so that it asks only once what Body has to know of a channel. It asks for kAhead
/// rows before it works on the first, as in ChannelSums.
template <class Body, int kWidth, int kAhead>
struct OverChannelRows {
  std::int64_t each = 0;  // rows of a thread
  Divisor columns;        // packs of a row
  std::int64_t rows = 0;
  Body body;

  RINGLET_HOST_DEVICE void operator()(std::int64_t i) const {
    const std::int64_t group = columns.quotient(i), column = i - group * columns.divisor();
    typename Body::OfChannel of_channels[kWidth];
    for (int k = 0; k < kWidth; ++k) of_channels[k] = body.channel(column * kWidth + k);
    const std::int64_t end = rows < (group + 1) * each ? rows : (group + 1) * each;
    std::int64_t row = group * each;
    RINGLET_ROLLED
    for (; row + kAhead <= end; row += kAhead) {
      write_rows<kAhead>(row * columns.divisor() + column, of_channels);
    }
    RINGLET_ROLLED
    for (; row < end; ++row) write_rows<1>(row * columns.divisor() + column, of_channels);
  }
  /// The packs of so many rows, from this one on.
  template <int kRows>
  RINGLET_HOST_DEVICE void write_rows(std::int64_t pack,
                                      const typename Body::OfChannel* of_channels) const {
    typename Body::template Loaded<kWidth> loaded[kRows];
    for (int k = 0; k < kRows; ++k) {
      loaded[k] = body.template read<kWidth>(pack + k * columns.divisor());
    }
    for (int k = 0; k < kRows; ++k) {
      body.template write<kWidth, kWidth>(pack + k * columns.divisor(), of_channels, loaded[k]);
    }
  }
};

/// A thread has up to sixteen rows, while there are threads enough. Four of them ahead were fastest
/// on an H200 (rows_of_batch_norm in bench/results/2026-11-27-h200-second.json), but not for a
/// thread of fewer rows, which has the registers in vain: that one has two.
template <int kWidth, class Body, class Grid>
void launch_over_rows(Grid& grid, const char* name, const Shape& shape, const Body& body) {
  constexpr std::int64_t kEnoughThreads = std::int64_t{1} << 17, kMostRows = 16;
  const std::int64_t columns = shape[1] / kWidth;
  const std::int64_t each =
      std::clamp<std::int64_t>(shape[0] * columns / kEnoughThreads, 1, kMostRows);
  const auto launch = [&]<int kAhead>(std::integral_constant<int, kAhead>) {
    const std::int64_t whole = std::max<std::int64_t>(1, each / kAhead * kAhead);
    grid.for_each(name, (shape[0] + whole - 1) / whole * columns,
                  OverChannelRows<Body, kWidth, kAhead>{whole, Divisor(columns), shape[0], body});
  };
  if (each < 4) return launch(std::integral_constant<int, 2>{});
  launch(std::integral_constant<int, 4>{});
}

/// The rows as above or, of planes, packs of pixels.
template <class Body, class Grid, class... T>
void launch_normed(Grid& grid, const char* name, const Shape& shape, const Body& body,
                   const T*... data) {
  if (pixels_per_channel(shape) > 1) {
    grid.for_each_pack(name, shape.count(), body);
  } else if (shape[1] % kPack == 0 && takes_packs<kPack>(data...)) {
    launch_over_rows<kPack>(grid, name, shape, body);
  } else {
    launch_over_rows<1>(grid, name, shape, body);
  }
}

template <class T, class I>
struct NormForward {
  using OfChannel = NormOfChannel;
  Divisor pixels, channels;
  NormParameters norm;
  const T* x;
  const T* residual;  // may be null
  T* y;
  static constexpr int kPack = kPackOf<T>;  // of planes

  bool takes_packs() const {
    return pixels.divisor() % kPack == 0 && grid::takes_packs<kPack>(x, y, residual);
  }
  template <int kWidth>
  RINGLET_HOST_DEVICE void apply(std::int64_t pack) const {
    const I plane = pixels.quotient(static_cast<I>(kWidth * pack));
    const NormOfChannel c = channel(channels.remainder(plane));
    write<kWidth, 1>(pack, &c, read<kWidth>(pack));
  }
  RINGLET_HOST_DEVICE NormOfChannel channel(std::int64_t c) const { return norm.channel(c); }
  template <int kWidth>
  struct Loaded {
    Pack<float, kWidth> values, added;
  };
  template <int kWidth>
  RINGLET_HOST_DEVICE Loaded<kWidth> read(std::int64_t pack) const {
    Loaded<kWidth> loaded{load_pack<kWidth>(x, pack), {}};
    if (residual != nullptr) loaded.added = load_pack<kWidth>(residual, pack);
    return loaded;
  }
  /// The pack's elements are of kChannels neighbouring channels.
  template <int kWidth, int kChannels>
  RINGLET_HOST_DEVICE void write(std::int64_t pack, const NormOfChannel* of_channels,
                                 const Loaded<kWidth>& loaded) const {
    auto values = loaded.values;
    for (int i = 0; i < kWidth; ++i) {
      const NormOfChannel& c = of_channels[i % kChannels];
      values[i] = (values[i] - c.mean) * c.gain + c.bias;
    }
    for (int i = 0; i < kWidth && residual != nullptr; ++i) values[i] += loaded.added[i];
    for (int i = 0; i < kWidth && norm.relu; ++i) values[i] = element::relu(values[i]);
    store_pack(y, pack, values);
  }
};

/// Sums of dz and dz h; writes dz where it is wanted.
template <class T, int kWidth, int kOfChannels>
struct NormSumSource {
  static constexpr int kChannels = kOfChannels;
  static constexpr int kAhead = kChannels > 1 ? NormRows<T>::kAheadOfSums : kUnitsAhead<T, kWidth>;
  static constexpr int kResident = kChannels > 1 ? NormRows<T>::kResident : 4;
  using Sum = SumPair;
  struct Loaded {
    Pack<float, kWidth> values, gradient, outputs;
  };
  NormParameters norm;
  const T* x;
  const T* y;  // may be null
  const T* dy;
  T* dz;  // may be null
  float* sums = nullptr;
  std::int64_t pixels = 0;

  RINGLET_HOST_DEVICE NormOfChannel channel(std::int64_t c) const { return norm.channel(c); }
  RINGLET_HOST_DEVICE Loaded read(std::int64_t plane, std::int32_t unit) const {
    Loaded loaded{load_pack<kWidth>(x + plane * pixels, unit),
                  load_pack<kWidth>(dy + plane * pixels, unit),
                  {}};
    if (y != nullptr) loaded.outputs = load_pack<kWidth>(y + plane * pixels, unit);
    return loaded;
  }
  RINGLET_HOST_DEVICE void add(const NormOfChannel* of_channels, std::int64_t plane,
                               std::int32_t unit, const Loaded& loaded,
                               Pack<SumPair, kChannels>& totals) const {
    Pack<float, kWidth> gradient = loaded.gradient;
    for (int i = 0; i < kWidth; ++i) {
      const NormOfChannel& c = of_channels[i % kChannels];
      const float deviation = loaded.values[i] - c.mean;
      const float output = y != nullptr ? loaded.outputs[i] : deviation * c.gain + c.bias;
      if (norm.relu) gradient[i] = element::relu_gradient(output, gradient[i]);
      const auto d = static_cast<double>(gradient[i]);
      totals[i % kChannels] += {d, d * static_cast<double>(deviation)};
    }
    if (dz != nullptr) store_pack(dz + plane * pixels, unit, gradient);
  }
  RINGLET_HOST_DEVICE void finish(std::int64_t c, const SumPair& sum) const {
    sums[c] = static_cast<float>(sum.first);
    sums[norm.channels + c] =
        static_cast<float>(sum.second * static_cast<double>(channel(c).factor));
  }
};

/// What the data gradient asks of a channel.
struct NormSlope : NormOfChannel {
  float shift, slope;
};

template <class T, class I>
struct NormData {
  using OfChannel = NormSlope;
  Divisor pixels, channels;
  NormParameters norm;
  const T* x;
  const T* dy;
  const float* sums = nullptr;  // null: the statistics are constants
  float beta = 0;
  T* dx;
  static constexpr int kPack = kPackOf<T>;  // of planes

  bool takes_packs() const {
    return pixels.divisor() % kPack == 0 && grid::takes_packs<kPack>(x, dy, dx);
  }
  template <int kWidth>
  RINGLET_HOST_DEVICE void apply(std::int64_t pack) const {
    const I plane = pixels.quotient(static_cast<I>(kWidth * pack));
    const NormSlope c = channel(channels.remainder(plane));
    write<kWidth, 1>(pack, &c, read<kWidth>(pack));
  }
  template <int kWidth>
  struct Loaded {
    Pack<float, kWidth> values, gradient, old_values;
  };
  template <int kWidth>
  RINGLET_HOST_DEVICE Loaded<kWidth> read(std::int64_t pack) const {
    Loaded<kWidth> loaded{load_pack<kWidth>(x, pack), load_pack<kWidth>(dy, pack), {}};
    if (beta != 0.0F) loaded.old_values = load_pack<kWidth>(static_cast<const T*>(dx), pack);
    return loaded;
  }
  RINGLET_HOST_DEVICE NormSlope channel(std::int64_t i) const {
    const NormOfChannel c = norm.channel(i);
    if (sums == nullptr) return {c, 0, 0};
    return {c, sums[i] * norm.per_value, sums[norm.channels + i] * norm.per_value * c.factor};
  }
  /// The pack's elements are of kChannels neighbouring channels.
  template <int kWidth, int kChannels>
  RINGLET_HOST_DEVICE void write(std::int64_t pack, const NormSlope* of_channels,
                                 const Loaded<kWidth>& loaded) const {
    auto gradient = loaded.gradient;
    for (int i = 0; i < kWidth; ++i) {
      const NormSlope& c = of_channels[i % kChannels];
      const float deviation = loaded.values[i] - c.mean;
      if (norm.relu) {
        gradient[i] = element::relu_gradient(deviation * c.gain + c.bias, gradient[i]);
      }
      gradient[i] = c.gain * (gradient[i] - (c.shift + deviation * c.slope));
    }
    for (int i = 0; i < kWidth && beta != 0.0F; ++i) gradient[i] += beta * loaded.old_values[i];
    store_pack(dx, pack, gradient);
  }
};

/// `view` as elements of type T; null where it is absent.
template <class T, class AnyView>
auto* elements_of(const AnyView& view) {
  return view.absent() ? nullptr : view.template as<T>();
}

/// Floor: reads 4 N bytes.
template <class Grid>
void batch_norm_moments(Grid&& grid, const ConstView& x, const View& moments) {
  const Shape shape = channel_shape(x);
  const std::int64_t pixels = pixels_per_channel(shape), channels = shape[1];
  const double count = static_cast<double>(x.count()) / static_cast<double>(channels);
  if (x.count() == 0) {  // there is no first value
    grid::fill(grid, 0, moments);
    return;
  }
  reduction::visit_activations(x.dtype(), [&]<class T>(T) {
    sum_channels<NormRows<T>::kShares>(
        grid, "batch_norm_moments", shape,
        [&]<class R>(R) {
          return MomentSource<T, R::kWidth, R::kChannels>{x.as<T>(), moments.f32(), pixels,
                                                          channels, count};
        },
        x.as<T>());
  });
}

/// Floor: reads 4 N bytes, and as many of the residual; writes 4 N.
template <class Grid>
void batch_norm_forward(Grid&& grid, const BatchNorm& norm, const ConstView& residual,
                        const View& y) {
  const Shape shape = channel_shape(y);
  if (shape.count() == 0) return;
  reduction::visit_activations(y.dtype(), [&]<class T>(T) {
    with_index_of(shape, [&]<class I>(I) {
      const NormForward<T, I> body{Divisor(pixels_per_channel(shape)),
                                   Divisor(shape[1]),
                                   NormParameters(norm),
                                   norm.x.as<T>(),
                                   elements_of<T>(residual),
                                   y.as<T>()};
      launch_normed(grid, "batch_norm_forward", shape, body, body.x, body.residual,
                    static_cast<const T*>(body.y));
    });
  });
}

/// Floor: reads 8 N bytes, and 4 N of y; writes 4 N of dz.
template <class Grid>
void batch_norm_backward_sums(Grid&& grid, const BatchNorm& norm, const ConstView& y,
                              const ConstView& dy, const View& dz, const View& sums) {
  const Shape shape = channel_shape(dy);
  reduction::visit_activations(dy.dtype(), [&]<class T>(T) {
    const T* const outputs = elements_of<T>(y);
    T* const through = elements_of<T>(dz);
    sum_channels<NormRows<T>::kShares>(
        grid, "batch_norm_backward_sums", shape,
        [&]<class R>(R) {
          return NormSumSource<T, R::kWidth, R::kChannels>{
              NormParameters(norm), norm.x.as<T>(),           outputs, dy.as<T>(), through,
              sums.f32(),           pixels_per_channel(shape)};
        },
        norm.x.as<T>(), outputs, dy.as<T>(), static_cast<const T*>(through));
  });
}

/// Floor: reads 8 N bytes, writes 4 N.
template <class Grid>
void batch_norm_backward_data(Grid&& grid, const BatchNorm& norm, const ConstView& dy,
                              const ConstView& sums, float beta, const View& dx) {
  const Shape shape = channel_shape(dx);
  if (shape.count() == 0) return;
  reduction::visit_activations(dx.dtype(), [&]<class T>(T) {
    with_index_of(shape, [&]<class I>(I) {
      const NormData<T, I> body{Divisor(pixels_per_channel(shape)),
                                Divisor(shape[1]),
                                NormParameters(norm),
                                norm.x.as<T>(),
                                dy.as<T>(),
                                elements_of<float>(sums),
                                beta,
                                dx.as<T>()};
      launch_normed(grid, "batch_norm_backward_data", shape, body, body.x, body.dy,
                    static_cast<const T*>(body.dx));
    });
  });
}

/// What is left of a backward pass when the sums are there: dz is known, or dy with its ReLU.
struct BehindTheSums {
  BatchNorm norm;
  ConstView gradient;
};

inline BehindTheSums behind_the_sums(BatchNorm norm, const ConstView& dy, const View& dz) {
  if (dz.absent()) return {norm, dy};
  norm.activation = Activation::none;
  return {norm, dz};
}

struct NormMerge {
  const float* from;
  float* moments;
  std::int64_t parts, channels;
  double pixels;

  RINGLET_HOST_DEVICE void operator()(std::int64_t c) const {
    element::Moments all;
    for (std::int64_t part = 0; part < parts; ++part) {
      const float* const of_part = from + part * (2 * channels + 1);
      all.add(static_cast<double>(of_part[2 * channels]) * pixels, static_cast<double>(of_part[c]),
              static_cast<double>(of_part[channels + c]));
    }
    moments[c] = static_cast<float>(all.mean);
    moments[channels + c] = static_cast<float>(all.squares);
  }
};

inline NormMerge norm_merge(const ConstView& parts, std::int64_t pixels, const View& moments) {
  return {parts.f32(), moments.f32(), parts.shape()[0], moments.shape()[1],
          static_cast<double>(pixels)};
}

template <class Grid>
void batch_norm_merge(Grid&& grid, const ConstView& parts, std::int64_t pixels,
                      const View& moments) {
  grid.for_each("batch_norm_merge", moments.shape()[1], norm_merge(parts, pixels, moments));
}

}  // namespace ringlet::grid
