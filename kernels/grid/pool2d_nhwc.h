// The kernels of kernels/pool2d.h, for nhwc. A thread has a pack of neighbouring channels of an
// output or of a pixel, or one channel. So whatever the windows are, what a warp reads lies side by
// side. The sums are added in the order of the other layouts: the same bits.
#pragma once

#include <cstdint>

#include "kernels/elements.h"
#include "kernels/grid/divisor.h"
#include "kernels/grid/pack.h"
#include "kernels/grid/pool_geometry.h"
#include "kernels/tensor.h"

namespace ringlet::grid {

/// An element of a tensor in nhwc: its pixel or output, counted over all samples, and its channel.
template <class I>
struct ChannelPoint {
  I pixel;
  I channel;
};

template <class I>
RINGLET_HOST_DEVICE ChannelPoint<I> channel_point(const Divisor& channels, std::int64_t element) {
  const auto i = static_cast<I>(element);
  const I pixel = channels.quotient(i);
  return {pixel, i - pixel * static_cast<I>(channels.divisor())};
}

/// Whether neighbouring channels lie in whole packs.
template <int kWidth, class... T>
bool channels_take_packs(const Divisor& channels, const T*... data) {
  return channels.divisor() % kWidth == 0 && takes_packs<kWidth>(data...);
}

template <class T, class I>
struct AveragePoolNhwc {
  PoolGeometry<I> g;  // its planes are samples
  Divisor channels;
  const T* x = nullptr;
  T* y = nullptr;
  static constexpr int kPack = kPackOf<float>;  // eight divisions would need too many registers

  bool takes_packs() const { return channels_take_packs<kPack>(channels, x, y); }
  template <int kWidth>
  RINGLET_HOST_DEVICE void apply(std::int64_t pack) const {
    const auto [output, channel] = channel_point<I>(channels, kWidth * pack);
    const PlanePoint<I> at = g.output(output);
    const PoolWindow<I> rows = g.h.window(at.row), columns = g.w.window(at.column);
    const auto stride = static_cast<I>(channels.divisor());
    const T* const image = x + g.plane_pixels(at.plane) * stride + channel;
    Pack<float, kWidth> sum{};
    RINGLET_ROLLED
    for (I r = rows.begin; r < rows.end; ++r) {
      RINGLET_ROLLED
      for (I c = columns.begin; c < columns.end; ++c) {
        const auto values = load_pack<kWidth>(image + (r * g.width() + c) * stride, 0);
        for (int i = 0; i < kWidth; ++i) sum[i] += values[i];
      }
    }
    const float divisor = g.divisor(rows, columns);
    for (int i = 0; i < kWidth; ++i) sum[i] /= divisor;
    store_pack(y, pack, sum);
  }
};

/// The averages of kWidth channels of x [N, H, W, C], from `channel` on, over an output's window.
template <int kWidth, class T, class I>
RINGLET_HOST_DEVICE Pack<float, kWidth> average_of_halves(const PoolGeometry<I>& g,
                                                          const PlanePoint<I>& at, I stride,
                                                          const T* x, I channel) {
  const I first = g.plane_pixels(at.plane) + 2 * at.row * g.width() + 2 * at.column;
  const T* const above = x + first * stride + channel;
  const T* const below = above + g.width() * stride;
  const Pack<float, kWidth> values[4] = {
      load_pack<kWidth>(above, 0), load_pack<kWidth>(above + stride, 0),
      load_pack<kWidth>(below, 0), load_pack<kWidth>(below + stride, 0)};
  Pack<float, kWidth> result{};
  for (int i = 0; i < kWidth; ++i) {
    result[i] = 0.25F * (values[0][i] + values[1][i] + values[2][i] + values[3][i]);
  }
  return result;
}

template <class T, class I>
struct AverageHalvesNhwc {
  PoolGeometry<I> g;  // its planes are samples
  Divisor channels;
  const T* x = nullptr;
  T* y = nullptr;
  static constexpr int kPack = kPackOf<T>;

  bool takes_packs() const { return channels_take_packs<kPack>(channels, x, y); }
  template <int kWidth>
  RINGLET_HOST_DEVICE void apply(std::int64_t pack) const {
    const auto [output, channel] = channel_point<I>(channels, kWidth * pack);
    const auto stride = static_cast<I>(channels.divisor());
    store_pack(y, pack, average_of_halves<kWidth>(g, g.output(output), stride, x, channel));
  }
};

/// Where the channels of an output lie: side by side, or a plane of outputs apart.
template <class I>
RINGLET_HOST_DEVICE I place_of_output(const PoolGeometry<I>& g, const PlanePoint<I>& at, I channels,
                                      I channel, bool side_by_side) {
  const I output = at.row * g.w.output_count() + at.column;
  const I outputs = g.plane_outputs(I{1});
  if (side_by_side) return (at.plane * outputs + output) * channels + channel;
  return (at.plane * channels + channel) * outputs + output;
}

/// The same into nchw, the order in which a linear layer takes the outputs.
template <class T, class I>
struct AverageHalvesToNchw {
  PoolGeometry<I> g;  // its planes are samples
  Divisor channels;
  const T* x = nullptr;
  T* y = nullptr;

  RINGLET_HOST_DEVICE void operator()(std::int64_t i) const {
    const auto [output, channel] = channel_point<I>(channels, i);
    const auto stride = static_cast<I>(channels.divisor());
    const PlanePoint<I> at = g.output(output);
    store(y[place_of_output(g, at, stride, channel, false)],
          average_of_halves<1>(g, at, stride, x, channel)[0]);
  }
};

template <class T, class I>
struct MaximumHalvesNhwc {
  PoolGeometry<I> g;  // its planes are samples
  Divisor channels;
  const T* x = nullptr;
  T* y = nullptr;
  std::int32_t* winner = nullptr;
  static constexpr int kPack = kPackOf<T>;

  bool takes_packs() const { return channels_take_packs<kPack>(channels, x, y, winner); }
  template <int kWidth>
  RINGLET_HOST_DEVICE void apply(std::int64_t pack) const {
    const auto [output, channel] = channel_point<I>(channels, kWidth * pack);
    const PlanePoint<I> at = g.output(output);
    const auto stride = static_cast<I>(channels.divisor());
    const I origin = 2 * at.row * g.width() + 2 * at.column;
    const T* const first = x + (g.plane_pixels(at.plane) + origin) * stride + channel;
    const I offsets[4] = {0, 1, g.width(), g.width() + 1};
    Pack<float, kWidth> values[4];
    for (int k = 0; k < 4; ++k) values[k] = load_pack<kWidth>(first + offsets[k] * stride, 0);
    Pack<float, kWidth> largest = values[0];
    Pack<std::int32_t, kWidth> best{};
    for (int i = 0; i < kWidth; ++i) {
      I offset = 0;
      for (int k = 1; k < 4; ++k) {
        const bool better = element::beats(values[k][i], largest[i]);
        largest[i] = better ? values[k][i] : largest[i];
        offset = better ? offsets[k] : offset;
      }
      best[i] = static_cast<std::int32_t>(origin + offset);
    }
    store_pack(y, pack, largest);
    store_pack(winner, pack, best);
  }
};

template <class T, class I>
struct MaximumPoolNhwc {
  PoolGeometry<I> g;  // its planes are samples
  Divisor channels;
  const T* x = nullptr;
  T* y = nullptr;
  std::int32_t* winner = nullptr;
  static constexpr int kPack = kPackOf<T>;

  bool takes_packs() const { return channels_take_packs<kPack>(channels, x, y, winner); }
  template <int kWidth>
  RINGLET_HOST_DEVICE void apply(std::int64_t pack) const {
    const auto [output, channel] = channel_point<I>(channels, kWidth * pack);
    const PlanePoint<I> at = g.output(output);
    const PoolWindow<I> rows = g.h.window(at.row), columns = g.w.window(at.column);
    const auto stride = static_cast<I>(channels.divisor());
    const T* const image = x + g.plane_pixels(at.plane) * stride + channel;
    const I first = rows.begin * g.width() + columns.begin;
    Pack<float, kWidth> largest = load_pack<kWidth>(image + first * stride, 0);
    Pack<std::int32_t, kWidth> best{};
    for (int i = 0; i < kWidth; ++i) best[i] = static_cast<std::int32_t>(first);
    RINGLET_ROLLED
    for (I r = rows.begin; r < rows.end; ++r) {
      RINGLET_ROLLED
      for (I c = columns.begin; c < columns.end; ++c) {
        const I pixel = r * g.width() + c;
        const auto values = load_pack<kWidth>(image + pixel * stride, 0);
        for (int i = 0; i < kWidth; ++i) {
          const bool better = element::beats(values[i], largest[i]);
          largest[i] = better ? values[i] : largest[i];
          best[i] = better ? static_cast<std::int32_t>(pixel) : best[i];
        }
      }
    }
    store_pack(y, pack, largest);
    store_pack(winner, pack, best);
  }
};

/// dx = beta * dx + the shares of the windows with this pixel.
template <class T, class I, class Share>
struct PoolBackwardNhwc {
  PoolGeometry<I> g;  // its planes are samples
  Divisor channels;
  Share share;
  float beta = 0;
  T* dx = nullptr;
  static constexpr int kPack = kPackOf<T>;

  bool takes_packs() const {
    return share.takes_packs(channels) && channels_take_packs<kPack>(channels, dx);
  }
  template <int kWidth>
  RINGLET_HOST_DEVICE void apply(std::int64_t pack) const {
    const auto [number, channel] = channel_point<I>(channels, kWidth * pack);
    const PlanePoint<I> at = g.pixel(number);
    const I row_end = g.h.end_output(at.row), column_end = g.w.end_output(at.column);
    const I first_column = g.w.first_output(at.column);
    const auto pixel = static_cast<std::int32_t>(at.row * g.width() + at.column);
    Pack<float, kWidth> total{};
    if (beta != 0) {
      total = load_pack<kWidth>(static_cast<const T*>(dx), pack);
      for (int i = 0; i < kWidth; ++i) total[i] *= beta;
    }
    RINGLET_ROLLED
    for (I r = g.h.first_output(at.row); r < row_end; ++r) {
      RINGLET_ROLLED
      for (I c = first_column; c < column_end; ++c) {
        const I output = g.plane_outputs(at.plane) + r * g.w.output_count() + c;
        const I element = output * static_cast<I>(channels.divisor()) + channel;
        share.template add<kWidth>(g, element, r, c, pixel, total);
      }
    }
    store_pack(dx, pack, total);
  }
};

/// The same for windows side by side: a pixel has one, or none at an odd edge.
template <class T, class I, class Share>
struct HalvesBackwardNhwc {
  PoolGeometry<I> g;  // its planes are samples
  Divisor channels;
  Share share;
  float beta = 0;
  T* dx = nullptr;
  static constexpr int kPack = kPackOf<T>;

  bool takes_packs() const {
    return share.takes_packs(channels) && channels_take_packs<kPack>(channels, dx);
  }
  template <int kWidth>
  RINGLET_HOST_DEVICE void apply(std::int64_t pack) const {
    const auto [number, channel] = channel_point<I>(channels, kWidth * pack);
    const PlanePoint<I> at = g.pixel(number);
    const I row = at.row / 2, column = at.column / 2;
    Pack<float, kWidth> total{};
    if (beta != 0) {
      total = load_pack<kWidth>(static_cast<const T*>(dx), pack);
      for (int i = 0; i < kWidth; ++i) total[i] *= beta;
    }
    if (row < g.h.output_count() && column < g.w.output_count()) {
      const I output = g.plane_outputs(at.plane) + row * g.w.output_count() + column;
      share.template add_of_halves<kWidth>(output * static_cast<I>(channels.divisor()) + channel,
                                           at.row * g.width() + at.column, total);
    }
    store_pack(dx, pack, total);
  }
};

template <class T, class Grid, class Share>
void pool2d_backward_nhwc(Grid& grid, const char* name, const Pool2dSpec& spec, const Shape& y,
                          const Share& share, float beta, const View& dx) {
  const Shape& x = dx.shape();
  const bool halves = are_halves(spec, x, y);
  with_geometry(spec, x, y, [&]<class I>(const PoolGeometry<I>& g) {
    if (halves) {
      grid.for_each_pack(
          name, x.count(),
          HalvesBackwardNhwc<T, I, Share>{g, Divisor(x[1]), share, beta, dx.as<T>()});
    } else {
      grid.for_each_pack(name, x.count(),
                         PoolBackwardNhwc<T, I, Share>{g, Divisor(x[1]), share, beta, dx.as<T>()});
    }
  });
}

template <class T>
struct AverageShareNhwc {
  const T* dy;

  bool takes_packs(const Divisor& channels) const {
    return channels_take_packs<kPackOf<T>>(channels, dy);
  }
  template <int kWidth, class I>
  RINGLET_HOST_DEVICE void add(const PoolGeometry<I>& g, I element, I row, I column, std::int32_t,
                               Pack<float, kWidth>& total) const {
    const auto gradients = load_pack<kWidth>(dy + element, 0);
    const float divisor = g.divisor(g.h.window(row), g.w.window(column));
    for (int i = 0; i < kWidth; ++i) total[i] += gradients[i] / divisor;
  }
  template <int kWidth, class I>
  RINGLET_HOST_DEVICE void add_of_halves(I element, I, Pack<float, kWidth>& total) const {
    const auto gradients = load_pack<kWidth>(dy + element, 0);
    for (int i = 0; i < kWidth; ++i) total[i] += 0.25F * gradients[i];  // a quarter is exact
  }
};

template <class T>
struct WinnersShareNhwc {
  const T* dy;
  const std::int32_t* winner;

  bool takes_packs(const Divisor& channels) const {
    return channels_take_packs<kPackOf<T>>(channels, dy, winner);
  }
  template <int kWidth, class I>
  RINGLET_HOST_DEVICE void add(const PoolGeometry<I>&, I element, I, I, std::int32_t pixel,
                               Pack<float, kWidth>& total) const {
    const auto gradients = load_pack<kWidth>(dy + element, 0);
    const auto winners = load_pack<kWidth>(winner + element, 0);
    for (int i = 0; i < kWidth; ++i) total[i] += winners[i] == pixel ? gradients[i] : 0.0F;
  }
  template <int kWidth, class I>
  RINGLET_HOST_DEVICE void add_of_halves(I element, I pixel, Pack<float, kWidth>& total) const {
    const auto gradients = load_pack<kWidth>(dy + element, 0);
    const auto winners = load_pack<kWidth>(winner + element, 0);
    for (int i = 0; i < kWidth; ++i) {
      total[i] += winners[i] == static_cast<std::int32_t>(pixel) ? gradients[i] : 0.0F;
    }
  }
};

template <class Grid>
void avg_pool2d_forward_nhwc(Grid& grid, const char* name, const Pool2dSpec& spec,
                             const ConstView& x, const View& y) {
  const Divisor channels(x.shape()[1]);
  const bool halves = are_halves(spec, x.shape(), y.shape());
  reduction::visit_activations(x.dtype(), [&]<class T>(T) {
    with_geometry(spec, x.shape(), y.shape(), [&]<class I>(const PoolGeometry<I>& g) {
      if (halves && y.layout() == Layout::nchw) {
        grid.for_each(name, y.count(),
                      AverageHalvesToNchw<T, I>{g, channels, x.as<T>(), y.as<T>()});
      } else if (halves) {
        grid.for_each_pack(name, y.count(),
                           AverageHalvesNhwc<T, I>{g, channels, x.as<T>(), y.as<T>()});
      } else {
        grid.for_each_pack(name, y.count(),
                           AveragePoolNhwc<T, I>{g, channels, x.as<T>(), y.as<T>()});
      }
    });
  });
}

template <class Grid>
void max_pool2d_forward_nhwc(Grid& grid, const char* name, const Pool2dSpec& spec,
                             const ConstView& x, const View& y, std::int32_t* winner) {
  const Divisor channels(x.shape()[1]);
  const bool halves = are_halves(spec, x.shape(), y.shape());
  reduction::visit_activations(x.dtype(), [&]<class T>(T) {
    with_geometry(spec, x.shape(), y.shape(), [&]<class I>(const PoolGeometry<I>& g) {
      if (halves) {
        grid.for_each_pack(name, y.count(),
                           MaximumHalvesNhwc<T, I>{g, channels, x.as<T>(), y.as<T>(), winner});
      } else {
        grid.for_each_pack(name, y.count(),
                           MaximumPoolNhwc<T, I>{g, channels, x.as<T>(), y.as<T>(), winner});
      }
    });
  });
}

/// a = (a quarter of dy) * [a > 0], for the windows of the pooling behind the ReLU. Of channel_sums
/// over rows of channels.
/// kSideBySide: dy is in nhwc as well, else in nchw.
template <class T, class I, int kOfChannels, bool kSideBySide>
struct RectifiedAverageGradientNhwc {
  static constexpr int kChannels = kOfChannels;
  PoolGeometry<I> g;  // its planes are samples
  Divisor channels;
  const T* dy;
  T* a;

  RINGLET_HOST_DEVICE Pack<double, kChannels> operator()(std::int64_t element, std::int32_t) const {
    const auto [pixel, channel] = channel_point<I>(channels, element);
    const PlanePoint<I> at = g.pixel(pixel);
    const I row = at.row / 2, column = at.column / 2;
    const auto activations = load_pack<kChannels>(a + element, 0);
    Pack<float, kChannels> gradients{};
    if (row < g.h.output_count() && column < g.w.output_count()) {
      const T* const first =
          dy + place_of_output(g, {at.plane, row, column}, static_cast<I>(channels.divisor()),
                               channel, kSideBySide);
      if constexpr (kSideBySide) {
        gradients = load_pack<kChannels>(first, 0);
      } else {
        for (int k = 0; k < kChannels; ++k) gradients[k] = load(first[k * g.plane_outputs(I{1})]);
      }
    }
    Pack<double, kChannels> sums{};
    for (int k = 0; k < kChannels; ++k) {
      // The sum with 0 is what pooling writes: it turns -0 into 0.
      gradients[k] = element::relu_gradient(activations[k], 0.0F + 0.25F * gradients[k]);
      sums[k] = static_cast<double>(gradients[k]);
    }
    store_pack(a + element, 0, gradients);
    return sums;
  }
};

}  // namespace ringlet::grid
