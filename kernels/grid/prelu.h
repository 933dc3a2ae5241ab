// The kernels of kernels/prelu.h, for nchw and nhwc.
#pragma once

#include <algorithm>

#include "kernels/elements.h"
#include "kernels/grid/bias.h"

namespace ringlet::grid {

/// The shape in which each slope has a channel of its own: one for all makes one channel of a
/// sample.
inline Shape slope_shape(const ConstView& x, const ConstView& slope) {
  if (slope.count() > 1) return channel_shape(x);
  return {x.shape()[0], 1, x.shape().count_per_sample(), 1};
}

/// I is the type of indices, as in pool_geometry.h.
template <class T, class I>
struct PReluForward {
  Divisor pixels, channels;
  const T* x = nullptr;
  const float* slopes = nullptr;
  T* y = nullptr;
  static constexpr int kPack = kPackOf<T>;

  bool takes_packs() const { return grid::takes_packs<kPack>(x, y); }
  template <int kWidth>
  RINGLET_HOST_DEVICE void apply(std::int64_t pack) const {
    auto values = load_pack<kWidth>(x, pack);
    for (int i = 0; i < kWidth; ++i) {
      const I plane = pixels.quotient(static_cast<I>(kWidth * pack + i));
      values[i] = element::prelu(values[i], slopes[channels.remainder(plane)]);
    }
    store_pack(y, pack, values);
  }
};

/// Floor: reads 4 N bytes, writes 4 N.
template <class Grid>
void prelu_forward(Grid&& grid, const ConstView& x, const ConstView& slope, const View& y) {
  if (x.count() == 0) return;
  const Shape shape = slope_shape(x, slope);
  reduction::visit_activations(x.dtype(), [&]<class T>(T) {
    with_index_of(shape, [&]<class I>(I) {
      grid.for_each_pack("prelu_forward", x.count(),
                         PReluForward<T, I>{Divisor(pixels_per_channel(shape)), Divisor(shape[1]),
                                            x.as<T>(), slope.f32(), y.as<T>()});
    });
  });
}

/// Sums of dy min(x, 0); writes dx where it is wanted.
template <class T, int kWidth, int kOfChannels>
struct PReluSource {
  static constexpr int kChannels = kOfChannels, kResident = 4;
  // Of three tensors. Two channels take the registers of further units.
  static constexpr int kAhead = std::min(kOfChannels > 1 ? 2 : 4, kUnitsAhead<T, kWidth>);
  using Sum = double;
  struct Loaded {
    Pack<float, kWidth> x, dy, old;
  };
  const T* x;
  const float* slopes;
  const T* dy;
  float beta;
  T* dx;  // may be null
  float beta_slope;
  float* dslopes;  // may be null
  std::int64_t pixels;

  RINGLET_HOST_DEVICE float channel(std::int64_t c) const { return slopes[c]; }
  RINGLET_HOST_DEVICE Loaded read(std::int64_t plane, std::int32_t unit) const {
    Loaded loaded{load_pack<kWidth>(x + plane * pixels, unit),
                  load_pack<kWidth>(dy + plane * pixels, unit),
                  {}};
    if (beta != 0.0F && dx != nullptr) {
      loaded.old = load_pack<kWidth>(static_cast<const T*>(dx) + plane * pixels, unit);
    }
    return loaded;
  }
  RINGLET_HOST_DEVICE void add(const float* of_channels, std::int64_t plane, std::int32_t unit,
                               const Loaded& loaded, Pack<double, kChannels>& totals) const {
    Pack<float, kWidth> gradient{};
    for (int i = 0; i < kWidth; ++i) {
      const float value = loaded.x[i], dy_there = loaded.dy[i];
      totals[i % kChannels] += static_cast<double>(element::prelu_slope_gradient(value, dy_there));
      gradient[i] =
          element::blend(beta, loaded.old[i],
                         element::prelu_gradient(value, of_channels[i % kChannels], dy_there));
    }
    if (dx != nullptr) store_pack(dx + plane * pixels, unit, gradient);
  }
  RINGLET_HOST_DEVICE void finish(std::int64_t c, double sum) const {
    if (dslopes == nullptr) return;
    dslopes[c] = element::blend(beta_slope, dslopes[c], static_cast<float>(sum));
  }
};

/// Floor: reads 8 N bytes, 12 N with a beta, writes 4 N.
template <class Grid>
void prelu_backward(Grid&& grid, const ConstView& x, const ConstView& slope, const ConstView& dy,
                    float beta, const View& dx, float beta_slope, const View& dslope) {
  const Shape shape = slope_shape(x, slope);
  reduction::visit_activations(x.dtype(), [&]<class T>(T) {
    T* const to = dx.absent() ? nullptr : dx.as<T>();
    sum_channels(
        grid, "prelu_backward", shape,
        [&]<class R>(R) {
          return PReluSource<T, R::kWidth, R::kChannels>{x.as<T>(),
                                                         slope.f32(),
                                                         dy.as<T>(),
                                                         beta,
                                                         to,
                                                         beta_slope,
                                                         dslope.absent() ? nullptr : dslope.f32(),
                                                         pixels_per_channel(shape)};
        },
        x.as<T>(), dy.as<T>(), static_cast<const T*>(to));
  });
}

}  // namespace ringlet::grid
