// The kernels of kernels/pool2d.h, for nchw and nhwc (pool_geometry.h); pool2d_backward.h has those
// of the gradients. In nhwc a thread has neighbouring channels, so whatever the windows are, what a
// warp reads lies side by side. The sums are added in one order in all layouts: the same bits.
#pragma once

#include <cstdint>
#include <type_traits>

#include "kernels/elements.h"
#include "kernels/grid/pack.h"
#include "kernels/grid/pool2d_backward.h"
#include "kernels/grid/pool_geometry.h"
#include "kernels/pool2d.h"
#include "kernels/tensor.h"

namespace ringlet::grid {

/// A channel of the pixel so many behind the first of an output's plane.
template <class Order, class T, class I = typename Order::Index>
RINGLET_HOST_DEVICE const T* pixel_at(const Order& order, const T* x, const PlanePoint<I>& at,
                                      I pixel, I channel) {
  return x + (order.g.plane_pixels(at.plane) + pixel) * order.stride() + channel;
}

template <class T, class Order>
struct AveragePool {
  using I = typename Order::Index;
  Order order;
  const T* x = nullptr;
  T* y = nullptr;
  // Eight divisions would need too many registers.
  static constexpr int kPack = Order::template kPackOf<float>;

  bool takes_packs() const { return order.template takes_packs<kPack>(x, y); }
  template <int kWidth>
  RINGLET_HOST_DEVICE void apply(std::int64_t pack) const {
    const auto& g = order.g;
    const auto [output, channel] = order.point(kWidth * pack);
    const PlanePoint<I> at = g.output(output);
    const PoolWindow<I> rows = g.h.window(at.row), columns = g.w.window(at.column);
    const T* const plane = pixel_at(order, x, at, I{0}, channel);
    Pack<float, kWidth> sum{};
    RINGLET_ROLLED
    for (I r = rows.begin; r < rows.end; ++r) {
      RINGLET_ROLLED
      for (I c = columns.begin; c < columns.end; ++c) {
        const auto values = load_pack<kWidth>(plane + (r * g.width() + c) * order.stride(), 0);
        for (int i = 0; i < kWidth; ++i) sum[i] += values[i];
      }
    }
    const float divisor = g.divisor(rows, columns);
    for (int i = 0; i < kWidth; ++i) sum[i] /= divisor;
    store_pack(y, pack, sum);
  }
};

/// The averages of kWidth channels of x, from `channel` on, over an output's window.
template <int kWidth, class T, class Order, class I>
RINGLET_HOST_DEVICE Pack<float, kWidth> average_of_halves(const Order& order,
                                                          const PlanePoint<I>& at, const T* x,
                                                          I channel) {
  const I width = order.g.width(), stride = order.stride();
  const T* const above = pixel_at(order, x, at, 2 * at.row * width + 2 * at.column, channel);
  const T* const below = above + width * stride;
  const Pack<float, kWidth> values[4] = {
      load_pack<kWidth>(above, 0), load_pack<kWidth>(above + stride, 0),
      load_pack<kWidth>(below, 0), load_pack<kWidth>(below + stride, 0)};
  Pack<float, kWidth> result{};
  for (int i = 0; i < kWidth; ++i) {
    result[i] = 0.25F * (values[0][i] + values[1][i] + values[2][i] + values[3][i]);
  }
  return result;
}

template <class T, class Order>
struct AverageHalves {
  Order order;
  const T* x = nullptr;
  T* y = nullptr;
  static constexpr int kPack = Order::template kPackOf<T>;

  bool takes_packs() const { return order.template takes_packs<kPack>(x, y); }
  template <int kWidth>
  RINGLET_HOST_DEVICE void apply(std::int64_t pack) const {
    const auto [output, channel] = order.point(kWidth * pack);
    store_pack(y, pack, average_of_halves<kWidth>(order, order.g.output(output), x, channel));
  }
};

/// From nhwc into nchw, the order in which a linear layer takes the outputs.
template <class T, class I>
struct AverageHalvesToNchw {
  ChannelsLast<I> order;
  const T* x = nullptr;
  T* y = nullptr;

  RINGLET_HOST_DEVICE void operator()(std::int64_t i) const {
    const auto [output, channel] = order.point(i);
    const PlanePoint<I> at = order.g.output(output);
    store(y[index_of_output(order.g, at, order.stride(), channel, false)],
          average_of_halves<1>(order, at, x, channel)[0]);
  }
};

/// Floor: reads 4 bytes a pixel in a window, writes 4 an output.
template <class Grid>
void avg_pool2d_forward(Grid&& grid, const Pool2dSpec& spec, const ConstView& x, const View& y) {
  constexpr const char* kName = "avg_pool2d_forward";
  const bool halves = are_halves(spec, x.shape(), y.shape());
  reduction::visit_activations(x.dtype(), [&]<class T>(T) {
    with_order(spec, x, y.shape(), [&]<class Order>(const Order& order) {
      using I = typename Order::Index;
      if constexpr (std::is_same_v<Order, ChannelsLast<I>>) {
        if (halves && y.layout() == Layout::nchw) {
          return grid.for_each(kName, y.count(),
                               AverageHalvesToNchw<T, I>{order, x.as<T>(), y.as<T>()});
        }
      }
      if (halves) {
        launch_pool(grid, kName, y.count(), AverageHalves<T, Order>{order, x.as<T>(), y.as<T>()});
      } else {
        launch_pool(grid, kName, y.count(), AveragePool<T, Order>{order, x.as<T>(), y.as<T>()});
      }
    });
  });
}

template <class T, class Order>
struct MaximumPool {
  using I = typename Order::Index;
  Order order;
  const T* x = nullptr;
  T* y = nullptr;
  std::int32_t* winner = nullptr;
  static constexpr int kPack = Order::template kPackOf<T>;

  bool takes_packs() const { return order.template takes_packs<kPack>(x, y, winner); }
  template <int kWidth>
  RINGLET_HOST_DEVICE void apply(std::int64_t pack) const {
    const auto& g = order.g;
    const auto [output, channel] = order.point(kWidth * pack);
    const PlanePoint<I> at = g.output(output);
    const PoolWindow<I> rows = g.h.window(at.row), columns = g.w.window(at.column);
    const T* const plane = pixel_at(order, x, at, I{0}, channel);
    const I first = rows.begin * g.width() + columns.begin;
    Pack<float, kWidth> largest = load_pack<kWidth>(plane + first * order.stride(), 0);
    Pack<std::int32_t, kWidth> best{};
    for (int i = 0; i < kWidth; ++i) best[i] = static_cast<std::int32_t>(first);
    RINGLET_ROLLED
    for (I r = rows.begin; r < rows.end; ++r) {
      RINGLET_ROLLED
      for (I c = columns.begin; c < columns.end; ++c) {
        const I pixel = r * g.width() + c;
        const auto values = load_pack<kWidth>(plane + pixel * order.stride(), 0);
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

template <class T, class Order>
struct MaximumHalves {
  using I = typename Order::Index;
  Order order;
  const T* x = nullptr;
  T* y = nullptr;
  std::int32_t* winner = nullptr;
  static constexpr int kPack = Order::template kPackOf<T>;

  bool takes_packs() const { return order.template takes_packs<kPack>(x, y, winner); }
  template <int kWidth>
  RINGLET_HOST_DEVICE void apply(std::int64_t pack) const {
    const auto [output, channel] = order.point(kWidth * pack);
    const PlanePoint<I> at = order.g.output(output);
    const I width = order.g.width(), stride = order.stride();
    const I origin = 2 * at.row * width + 2 * at.column;
    const T* const first = pixel_at(order, x, at, origin, channel);
    const I offsets[4] = {0, 1, width, width + 1};
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

/// Floor: reads 4 bytes a pixel in a window, writes 8 an output.
template <class Grid>
void max_pool2d_forward(Grid&& grid, const Pool2dSpec& spec, const ConstView& x, const View& y,
                        const View& winner) {
  constexpr const char* kName = "max_pool2d_forward";
  auto* winners = winner.as<std::int32_t>();
  const bool halves = are_halves(spec, x.shape(), y.shape());
  reduction::visit_activations(x.dtype(), [&]<class T>(T) {
    with_order(spec, x, y.shape(), [&]<class Order>(const Order& order) {
      if (halves) {
        launch_pool(grid, kName, y.count(),
                    MaximumHalves<T, Order>{order, x.as<T>(), y.as<T>(), winners});
      } else {
        launch_pool(grid, kName, y.count(),
                    MaximumPool<T, Order>{order, x.as<T>(), y.as<T>(), winners});
      }
    });
  });
}

}  // namespace ringlet::grid
