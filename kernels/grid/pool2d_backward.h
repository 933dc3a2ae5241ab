// Pooling backward, for nchw and nhwc (pool_geometry.h). It gathers: each pixel asks the windows
// that contain it, in the order in which the CPU adds them, so that no atomics are needed and the
// sums have the same bits. Windows side by side need no asking: in nchw each output writes its
// pixels, in nhwc a pixel has one window, or none at an odd edge.
#pragma once

#include <cstdint>
#include <type_traits>

#include "kernels/elements.h"
#include "kernels/grid/pack.h"
#include "kernels/grid/pool_geometry.h"
#include "kernels/pool2d.h"
#include "kernels/tensor.h"

namespace ringlet::grid {

/// A thread an element.
template <class F>
struct Single {
  F f;
  RINGLET_HOST_DEVICE void operator()(std::int64_t i) const { f.template apply<1>(i); }
};

template <class Grid, class F>
void launch_pool(Grid& grid, const char* name, std::int64_t n, const F& f) {
  if constexpr (F::kPack == 1) {
    grid.for_each(name, n, Single<F>{f});
  } else {
    grid.for_each_pack(name, n, f);
  }
}

/// What a gradient begins with.
RINGLET_HOST_DEVICE inline float start_of(float beta, float old_value) {
  return beta == 0 ? 0.0F : beta * old_value;
}

/// dx = beta * dx + the shares of the windows with this pixel.
template <class T, class Order, class Share>
struct PoolBackward {
  using I = typename Order::Index;
  Order order;
  Share share;
  float beta = 0;
  T* dx = nullptr;
  static constexpr int kPack = Order::template kPackOf<T>;

  bool takes_packs() const {
    return share.takes_packs(order) && order.template takes_packs<kPack>(dx);
  }
  template <int kWidth>
  RINGLET_HOST_DEVICE void apply(std::int64_t pack) const {
    const auto& g = order.g;
    const auto [number, channel] = order.point(kWidth * pack);
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
        share.template add<kWidth>(g, output * order.stride() + channel, r, c, pixel, total);
      }
    }
    store_pack(dx, pack, total);
  }
};

/// The same in nhwc for windows side by side: a pixel has one, or none at an odd edge.
template <class T, class I, class Share>
struct HalvesBackwardNhwc {
  ChannelsLast<I> order;
  Share share;
  float beta = 0;
  T* dx = nullptr;
  static constexpr int kPack = kPackOf<T>;

  bool takes_packs() const {
    return share.takes_packs(order) && order.template takes_packs<kPack>(dx);
  }
  template <int kWidth>
  RINGLET_HOST_DEVICE void apply(std::int64_t pack) const {
    const auto& g = order.g;
    const auto [number, channel] = order.point(kWidth * pack);
    const PlanePoint<I> at = g.pixel(number);
    const I row = at.row / 2, column = at.column / 2;
    Pack<float, kWidth> total{};
    if (beta != 0) {
      total = load_pack<kWidth>(static_cast<const T*>(dx), pack);
      for (int i = 0; i < kWidth; ++i) total[i] *= beta;
    }
    if (row < g.h.output_count() && column < g.w.output_count()) {
      const I output = g.plane_outputs(at.plane) + row * g.w.output_count() + column;
      share.template add_of_halves<kWidth>(output * order.stride() + channel,
                                           at.row * g.width() + at.column, total);
    }
    store_pack(dx, pack, total);
  }
};

/// The pixels of the window of output `at`, in a plane that begins at `pixels`, one or two
/// neighbours (kWidth) at a time: pixels[p] = f(p, pixels[p]). Those that an odd height or width
/// leaves without a window go to the nearest output: pixels[p] = f.outside(pixels[p]). Where
/// f.reads() is false, f is given 0. Returns the sum of what f returned.
template <int kWidth, class T, class I, class F>
RINGLET_HOST_DEVICE double for_window(const PoolGeometry<I>& g, const PlanePoint<I>& at, T* pixels,
                                      const F& f) {
  const I width = g.width(), corner = 2 * at.row * width + 2 * at.column;
  double sum = 0;
  for (int k = 0; k < 4; k += kWidth) {
    const I first = corner + (k < 2 ? 0 : width) + k % 2;
    Pack<float, kWidth> values{};
    if (f.reads()) values = load_pack<kWidth>(static_cast<const T*>(pixels + first), 0);
    for (int i = 0; i < kWidth; ++i) {
      values[i] = f(first + i, values[i]);
      sum += static_cast<double>(values[i]);
    }
    store_pack(pixels + first, 0, values);
  }
  const auto outside = [&](I p) {
    store(pixels[p], f.outside(f.reads() ? load(pixels[p]) : 0.0F));
  };
  const bool right = kWidth == 1 && 2 * at.column + 3 == width;
  const bool below = 2 * at.row + 3 == g.h.pixel_count();
  if (right) {
    outside(corner + 2);
    outside(corner + width + 2);
  }
  if (below) {
    outside(corner + 2 * width);
    outside(corner + 2 * width + 1);
  }
  if (right && below) outside(corner + 2 * width + 2);
  return sum;
}

/// Whether for_window() may take neighbours as one: they lie at a multiple of their size.
template <class T>
bool takes_pairs(const View& x) {
  return x.shape()[3] % 2 == 0 && takes_packs<2>(x.as<T>());
}

template <class T>
struct AverageShare {
  const T* dy;

  template <class Order>
  bool takes_packs(const Order& order) const {
    return order.template takes_packs<kPackOf<T>>(dy);
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

  struct Spread {
    float share;
    float beta;
    RINGLET_HOST_DEVICE bool reads() const { return beta != 0; }
    RINGLET_HOST_DEVICE float operator()(std::int32_t, float old_value) const {
      return start_of(beta, old_value) + share;
    }
    RINGLET_HOST_DEVICE float outside(float old_value) const { return start_of(beta, old_value); }
  };
  /// To all four pixels of a window alike; a quarter is exact.
  RINGLET_HOST_DEVICE Spread spread(std::int64_t o, float beta) const {
    return {0.25F * load(dy[o]), beta};
  }
};

template <class T>
struct WinnersShare {
  const T* dy;
  const std::int32_t* winner;

  template <class Order>
  bool takes_packs(const Order& order) const {
    return order.template takes_packs<kPackOf<T>>(dy, winner);
  }
  template <int kWidth, class I>
  RINGLET_HOST_DEVICE void add(const PoolGeometry<I>&, I element, I, I, std::int32_t pixel,
                               Pack<float, kWidth>& total) const {
    const auto winners = load_pack<kWidth>(winner + element, 0);
    if constexpr (kWidth == 1) {  // seldom the winner: then nothing more is read
      total[0] += winners[0] == pixel ? load(dy[element]) : 0.0F;
    } else {
      const auto gradients = load_pack<kWidth>(dy + element, 0);
      for (int i = 0; i < kWidth; ++i) total[i] += winners[i] == pixel ? gradients[i] : 0.0F;
    }
  }
  template <int kWidth, class I>
  RINGLET_HOST_DEVICE void add_of_halves(I element, I pixel, Pack<float, kWidth>& total) const {
    const auto gradients = load_pack<kWidth>(dy + element, 0);
    const auto winners = load_pack<kWidth>(winner + element, 0);
    for (int i = 0; i < kWidth; ++i) {
      total[i] += winners[i] == static_cast<std::int32_t>(pixel) ? gradients[i] : 0.0F;
    }
  }

  struct Spread {
    float share;
    std::int32_t winner;
    float beta;
    RINGLET_HOST_DEVICE bool reads() const { return beta != 0; }
    RINGLET_HOST_DEVICE float operator()(std::int32_t pixel, float old_value) const {
      const float start = start_of(beta, old_value);
      return pixel == winner ? start + share : start;
    }
    RINGLET_HOST_DEVICE float outside(float old_value) const { return start_of(beta, old_value); }
  };
  RINGLET_HOST_DEVICE Spread spread(std::int64_t o, float beta) const {
    return {load(dy[o]), winner[o], beta};
  }
};

/// Windows side by side: a thread an output, which writes its pixels.
template <class T, int kWidth, class Share>
struct HalvesBackward {
  PoolGeometry<std::int32_t> g;
  Share share;
  float beta = 0;
  T* dx = nullptr;

  RINGLET_HOST_DEVICE void operator()(std::int64_t o) const {
    const PlanePoint<std::int32_t> at = g.output(o);
    for_window<kWidth>(g, at, dx + g.plane_pixels(at.plane), share.spread(o, beta));
  }
};

template <class T, class Grid, class Share>
void pool2d_backward(Grid& grid, const char* name, const Pool2dSpec& spec, const Shape& y,
                     const Share& share, float beta, const View& dx) {
  const Shape& x = dx.shape();
  T* const to = dx.as<T>();
  const bool halves = are_halves(spec, x, y);
  if (halves && dx.layout() != Layout::nhwc && has_small_indices(x)) {
    const PoolGeometry<std::int32_t> g(spec, x, y);
    if (takes_pairs<T>(dx)) {
      grid.for_each(name, y.count(), HalvesBackward<T, 2, Share>{g, share, beta, to});
    } else {
      grid.for_each(name, y.count(), HalvesBackward<T, 1, Share>{g, share, beta, to});
    }
    return;
  }
  with_order(spec, dx, y, [&]<class Order>(const Order& order) {
    using I = typename Order::Index;
    if constexpr (std::is_same_v<Order, ChannelsLast<I>>) {
      if (halves) {
        return grid.for_each_pack(name, x.count(),
                                  HalvesBackwardNhwc<T, I, Share>{order, share, beta, to});
      }
    }
    launch_pool(grid, name, x.count(), PoolBackward<T, Order, Share>{order, share, beta, to});
  });
}

/// Floor: reads 4 bytes an output, writes 4 a pixel; with a beta, reads 4 a pixel.
template <class Grid>
void avg_pool2d_backward(Grid&& grid, const Pool2dSpec& spec, const ConstView& dy, float beta,
                         const View& dx) {
  reduction::visit_activations(dx.dtype(), [&]<class T>(T) {
    pool2d_backward<T>(grid, "avg_pool2d_backward", spec, dy.shape(), AverageShare<T>{dy.as<T>()},
                       beta, dx);
  });
}

/// Floor: reads 8 bytes an output, writes 4 a pixel; with a beta, reads 4 a pixel.
template <class Grid>
void max_pool2d_backward(Grid&& grid, const Pool2dSpec& spec, const ConstView& dy,
                         const ConstView& winner, float beta, const View& dx) {
  reduction::visit_activations(dx.dtype(), [&]<class T>(T) {
    pool2d_backward<T>(grid, "max_pool2d_backward", spec, dy.shape(),
                       WinnersShare<T>{dy.as<T>(), winner.as<std::int32_t>()}, beta, dx);
  });
}

/// Where the channels of an output lie: side by side, or a plane of outputs apart.
template <class I>
RINGLET_HOST_DEVICE I index_of_output(const PoolGeometry<I>& g, const PlanePoint<I>& at, I channels,
                                      I channel, bool side_by_side) {
  const I output = at.row * g.w.output_count() + at.column;
  const I outputs = g.plane_outputs(I{1});
  if (side_by_side) return (at.plane * outputs + output) * channels + channel;
  return (at.plane * channels + channel) * outputs + output;
}

/// a = (a quarter of dy) * [a > 0], for the windows of the pooling behind the ReLU. Of channel_sums
/// over rows of channels.
/// kSideBySide: dy is in nhwc as well, else in nchw.
template <class T, class I, int kOfChannels, bool kSideBySide>
struct RectifiedAverageGradientNhwc {
  static constexpr int kChannels = kOfChannels, kAhead = 1;
  struct Loaded {};
  PoolGeometry<I> g;  // its planes are samples
  Divisor channels;
  const T* dy;
  T* a;

  RINGLET_HOST_DEVICE Loaded read(std::int64_t, std::int32_t) const { return {}; }
  RINGLET_HOST_DEVICE Pack<double, kChannels> operator()(std::int64_t element, std::int32_t,
                                                         Loaded) const {
    const auto [pixel, channel] = channel_point<I>(channels, element);
    const PlanePoint<I> at = g.pixel(pixel);
    const I row = at.row / 2, column = at.column / 2;
    const auto activations = load_pack<kChannels>(a + element, 0);
    Pack<float, kChannels> gradients{};
    if (row < g.h.output_count() && column < g.w.output_count()) {
      const T* const first =
          dy + index_of_output(g, {at.plane, row, column}, static_cast<I>(channels.divisor()),
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
