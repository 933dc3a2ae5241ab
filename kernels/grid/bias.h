// The kernels of kernels/bias.h, for nchw and nhwc.
#pragma once

#include <algorithm>
#include <type_traits>

#include "kernels/elements.h"
#include "kernels/grid/divisor.h"
#include "kernels/grid/grid.h"
#include "kernels/grid/pack.h"
#include "kernels/grid/pool2d.h"
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

/// I is the type of indices, as in pool2d.h.
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

/// Cuts N samples, with `units` of a channel's work each, among the blocks of a team. How it is cut
/// follows from the shapes alone, so the same gradients have the same sum on every GPU. A block's
/// share of what fits into a GPU has far fewer than 2^31 units.
struct ChannelSumPlan {
  std::int64_t samples = 0;
  std::int64_t samples_per_block = 1;
  std::int64_t team_size = 1;

  /// `rows`: threads of a block that work on the same channel.
  ChannelSumPlan(std::int64_t sample_count, std::int64_t units, std::int64_t teams, int rows)
      : samples(sample_count) {
    constexpr std::int64_t kEnoughBlocks = 1024;
    const std::int64_t fewest = (rows + units - 1) / units;  // something for every thread
    const std::int64_t wanted = std::max<std::int64_t>(1, kEnoughBlocks / teams);
    samples_per_block = std::max(fewest, (samples + wanted - 1) / wanted);
    team_size = std::max<std::int64_t>(1, (samples + samples_per_block - 1) / samples_per_block);
  }
};

/// Columns of channels that lie side by side in memory: a sector of 32 bytes of them.
template <class T>
inline constexpr int kColumnsOf = 32 / static_cast<int>(sizeof(T));

/// db[c] = beta * db[c] + sum of source(n * channels + c, unit) over samples n and units. Each is
/// called once, and may write. A team has kColumns channels, whose threads are neighbours:
/// kColumnsOf<> where the channels lie side by side in memory, and 1 where a plane of pixels does.
template <int kColumns, class Source>
struct ChannelSums : TeamSum<ChannelSums<kColumns, Source>, double, kColumns> {
  using Base = TeamSum<ChannelSums, double, kColumns>;

  ChannelSumPlan plan;
  std::int64_t channels = 0;
  Divisor units;
  Source source;
  float beta = 0;
  float* db = nullptr;  // may be null

  RINGLET_HOST_DEVICE double share(const Place& place) const {
    const std::int64_t team = this->team_size.quotient(place.block);
    const std::int64_t first =
        (place.block - team * this->team_size.divisor()) * plan.samples_per_block;
    const std::int64_t channel = team * kColumns + place.thread % kColumns;
    if (channel >= channels) return 0;
    const std::int64_t samples = std::min(plan.samples - first, plan.samples_per_block);
    const auto end = static_cast<std::int32_t>(samples * units.divisor());
    double total = 0;
    RINGLET_ROLLED
    for (std::int32_t i = place.thread / kColumns; i < end; i += Base::kRows) {
      const std::int32_t n = units.quotient(i);
      total += source((first + n) * channels + channel,
                      i - n * static_cast<std::int32_t>(units.divisor()));
    }
    return total;
  }
  RINGLET_HOST_DEVICE void finish(std::int64_t channel, double sum) const {
    if (db == nullptr || channel >= channels) return;
    db[channel] = element::blend(beta, db[channel], static_cast<float>(sum));
  }
};

template <int kColumns, class Grid, class Source>
void launch_channel_sums(Grid& grid, const char* name, const Shape& shape, std::int64_t units,
                         const Source& source, float beta, const View& db) {
  using Sums = ChannelSums<kColumns, Source>;
  const std::int64_t channels = shape[1], teams = (channels + kColumns - 1) / kColumns;
  if (teams == 0) return;
  const bool nothing = shape.count() == 0;
  const std::int64_t at_least_one = std::max<std::int64_t>(1, units);
  const ChannelSumPlan plan(nothing ? 0 : shape[0], at_least_one, teams, Sums::kRows);
  auto* partial = grid.template workspace_of<double>(teams * plan.team_size * kColumns);
  grid.run_teams(name, teams,
                 Sums{{Divisor(plan.team_size), partial},
                      plan,
                      channels,
                      Divisor(at_least_one),
                      source,
                      beta,
                      db.absent() ? nullptr : db.f32()});
}

/// dy as it is.
template <class T, int kWidth>
struct Gradient {
  const T* dy;
  std::int64_t pixels;

  RINGLET_HOST_DEVICE double operator()(std::int64_t plane, std::int32_t unit) const {
    const auto values = load_pack<kWidth>(dy + plane * pixels, unit);
    double sum = 0;
    for (int i = 0; i < kWidth; ++i) sum += static_cast<double>(values[i]);
    return sum;
  }
};

/// dz = dy * [a > 0], on the way.
template <class T, int kWidth>
struct RectifiedGradient {
  const T* a;
  const T* dy;
  T* dz;
  std::int64_t pixels;

  RINGLET_HOST_DEVICE double operator()(std::int64_t plane, std::int32_t unit) const {
    const auto activations = load_pack<kWidth>(a + plane * pixels, unit);
    auto values = load_pack<kWidth>(dy + plane * pixels, unit);
    double sum = 0;
    for (int i = 0; i < kWidth; ++i) {
      values[i] = element::relu_gradient(activations[i], values[i]);
      sum += static_cast<double>(values[i]);
    }
    store_pack(dz + plane * pixels, unit, values);
    return sum;
  }
};

/// a = (a quarter of dy) * [a > 0], for the windows of the pooling behind the ReLU.
template <class T, int kWidth>
struct RectifiedAverageGradient {
  PoolGeometry<std::int32_t> g;  // of one plane
  const T* dy;
  T* a;
  std::int64_t pixels, outputs;

  struct Spread {
    float share;
    RINGLET_HOST_DEVICE bool reads() const { return true; }
    RINGLET_HOST_DEVICE float operator()(std::int32_t, float activation) const {
      return element::relu_gradient(activation, share);
    }
    RINGLET_HOST_DEVICE float outside(float) const { return 0; }
  };

  RINGLET_HOST_DEVICE double operator()(std::int64_t plane, std::int32_t unit) const {
    const std::int32_t row = g.w.outputs.quotient(unit);
    const PlanePoint<std::int32_t> at{0, row, unit - row * g.w.output_count()};
    return for_window<kWidth>(g, at, a + plane * pixels,
                              // The sum with 0 is what pooling writes: it turns -0 into 0.
                              Spread{0.0F + 0.25F * load(dy[plane * outputs + unit])});
  }
};

/// launch(width) with the width of packs, as a type, in which all planes of this many pixels can be
/// read.
template <class Launch, class... T>
void with_width_of_planes(std::int64_t pixels, const Launch& launch, const T*... data) {
  constexpr int kPack = kPackOf<T...>;
  if (pixels % kPack == 0 && takes_packs<kPack>(data...)) {
    launch(std::integral_constant<int, kPack>{});
  } else {
    launch(std::integral_constant<int, 1>{});
  }
}

/// Sums over the channels of `shape` of make(width), a source that reads `data`.
template <class Grid, class Make, class T, class... Others>
void sum_channels(Grid& grid, const char* name, const Shape& shape, float beta, const View& db,
                  const Make& make, const T* data, const Others*... others) {
  const std::int64_t pixels = pixels_per_channel(shape);
  if (pixels == 1) {
    launch_channel_sums<kColumnsOf<T>>(grid, name, shape, 1, make(std::integral_constant<int, 1>{}),
                                       beta, db);
    return;
  }
  const auto launch = [&]<int kWidth>(std::integral_constant<int, kWidth> width) {
    launch_channel_sums<1>(grid, name, shape, pixels / kWidth, make(width), beta, db);
  };
  with_width_of_planes(pixels, launch, data, others...);
}

/// Floor: reads 4 N bytes. Without samples, db = beta * db.
template <class Grid>
void bias_backward(Grid&& grid, const ConstView& dy, float beta, const View& db) {
  const Shape shape = channel_shape(dy);
  reduction::visit_activations(dy.dtype(), [&]<class T>(T) {
    const auto make = [&]<int kWidth>(std::integral_constant<int, kWidth>) {
      return Gradient<T, kWidth>{dy.as<T>(), pixels_per_channel(shape)};
    };
    sum_channels(grid, "bias_backward", shape, beta, db, make, dy.as<T>());
  });
}

/// Floor: reads 8 N bytes, writes 4 N.
template <class Grid>
void bias_relu_backward(Grid&& grid, const ConstView& a, const ConstView& dy, const View& dz,
                        float beta, const View& db) {
  const Shape shape = channel_shape(dy);
  reduction::visit_activations(dy.dtype(), [&]<class T>(T) {
    const auto make = [&]<int kWidth>(std::integral_constant<int, kWidth>) {
      return RectifiedGradient<T, kWidth>{a.as<T>(), dy.as<T>(), dz.as<T>(),
                                          pixels_per_channel(shape)};
    };
    sum_channels(grid, "bias_relu_backward", shape, beta, db, make, a.as<T>(), dy.as<T>(),
                 static_cast<const T*>(dz.as<T>()));
  });
}

template <class T, class Grid>
void bias_relu_avg_pool2d_backward_nhwc(Grid& grid, const ConstView& dy, const View& a, float beta,
                                        const View& db) {
  with_geometry({}, a.shape(), dy.shape(), [&]<class I>(const PoolGeometry<I>& g) {
    launch_channel_sums<kColumnsOf<T>>(
        grid, "bias_relu_avg_pool2d_backward", channel_shape(a), 1,
        RectifiedAverageGradientNhwc<T, I>{g, Divisor(a.shape()[1]), dy.as<T>(), a.as<T>()}, beta,
        db);
  });
}

template <class T, int kWidth, class Grid>
void bias_relu_avg_pool2d_backward_nchw(Grid& grid, const ConstView& dy, const View& a, float beta,
                                        const View& db) {
  const std::int64_t outputs = pixels_per_channel(dy.shape());
  launch_channel_sums<1>(grid, "bias_relu_avg_pool2d_backward", dy.shape(), outputs,
                         RectifiedAverageGradient<T, kWidth>{
                             PoolGeometry<std::int32_t>({}, a.shape(), dy.shape()), dy.as<T>(),
                             a.as<T>(), pixels_per_channel(a.shape()), outputs},
                         beta, db);
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
