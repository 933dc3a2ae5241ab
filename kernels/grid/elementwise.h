// The kernels that go over elements one by one: of kernels/elementwise.h and normalize.h.
#pragma once

#include <cmath>

#include "kernels/elements.h"
#include "kernels/grid/divisor.h"
#include "kernels/grid/grid.h"
#include "kernels/grid/map.h"
#include "kernels/normalize.h"
#include "kernels/reduction.h"
#include "kernels/tensor.h"

namespace ringlet::grid {

template <class T>
struct Fill {
  T value;
  T* y = nullptr;
  static constexpr int kPack = kPackOf<T>;

  bool takes_packs() const { return grid::takes_packs<kPack>(y); }
  template <int kWidth>
  RINGLET_HOST_DEVICE void apply(std::int64_t pack) const {
    Pack<T, kWidth> values{};
    for (int i = 0; i < kWidth; ++i) values[i] = value;
    store_pack(y, pack, values);
  }
};

struct Times {
  float factor;
  RINGLET_HOST_DEVICE float operator()(float x) const { return factor * x; }
};

struct Relu {
  RINGLET_HOST_DEVICE float operator()(float x) const { return element::relu(x); }
};

struct ReluGradient {
  RINGLET_HOST_DEVICE float operator()(float y, float dy) const {
    return element::relu_gradient(y, dy);
  }
};

struct Sigmoid {
  RINGLET_HOST_DEVICE float operator()(float x) const { return element::sigmoid(x); }
};

struct SigmoidGradient {
  RINGLET_HOST_DEVICE float operator()(float y, float dy) const {
    return element::sigmoid_gradient(y, dy);
  }
};

struct Tanh {
  RINGLET_HOST_DEVICE float operator()(float x) const { return std::tanh(x); }
};

struct TanhGradient {
  RINGLET_HOST_DEVICE float operator()(float y, float dy) const {
    return element::tanh_gradient(y, dy);
  }
};

struct Same {
  RINGLET_HOST_DEVICE float operator()(float x) const { return x; }
};

struct Normalize {
  Normalization normalization;
  RINGLET_HOST_DEVICE float operator()(std::uint8_t x) const {
    return element::normalize(x, normalization.mean, normalization.deviation);
  }
};

/// Floor: writes 4 N bytes.
template <class Grid>
void fill(Grid&& grid, float value, const View& y) {
  if (y.dtype() == DType::f32) {
    grid.for_each_pack("fill", y.storage(), Fill<float>{value, y.f32()});
  } else {
    grid.for_each_pack("fill", y.storage(),
                       Fill<std::int32_t>{static_cast<std::int32_t>(value), y.as<std::int32_t>()});
  }
}

/// Floor: reads 8 N bytes, writes 4 N.
template <class Grid>
void accumulate(Grid&& grid, const ConstView& x, const View& y) {
  grid.for_each_pack("accumulate", y.storage(),
                     make_map(Sum{}, y.f32(), ConstView(y).f32(), x.f32()));
}

// The floors of what takes activations are for f32. With narrow ones they are half as high.

/// Floor: reads 8 N bytes, writes 4 N.
template <class Grid>
void add(Grid&& grid, const ConstView& a, const ConstView& b, const View& y) {
  reduction::visit_activations(y.dtype(), [&]<class T>(T) {
    grid.for_each_pack("add", y.storage(), make_map(Sum{}, y.as<T>(), a.as<T>(), b.as<T>()));
  });
}

/// Floor: reads 4 N bytes, 8 N with a beta, writes 4 N.
template <class Grid>
void scale(Grid&& grid, float alpha, const ConstView& x, float beta, const View& y) {
  reduction::visit_activations(y.dtype(), [&]<class T>(T) {
    map_blended(grid, "scale", y.storage(), beta, y.as<T>(), Times{alpha}, x.as<T>());
  });
}

/// y = f(x). Floor: reads 4 N bytes, writes 4 N.
template <class Grid, class F>
void activate(Grid& grid, const char* name, F f, const ConstView& x, const View& y) {
  reduction::visit_activations(y.dtype(), [&]<class T>(T) {
    grid.for_each_pack(name, x.storage(), make_map(f, y.as<T>(), x.as<T>()));
  });
}

/// dx = beta * dx + f(y, dy). Floor: reads 8 N bytes, 12 N with a beta, writes 4 N.
template <class Grid, class F>
void activate_backward(Grid& grid, const char* name, F f, const ConstView& y, const ConstView& dy,
                       float beta, const View& dx) {
  reduction::visit_activations(y.dtype(), [&]<class T>(T) {
    map_blended(grid, name, y.storage(), beta, dx.as<T>(), f, y.as<T>(), dy.as<T>());
  });
}

template <class Grid>
void relu_forward(Grid&& grid, const ConstView& x, const View& y) {
  activate(grid, "relu_forward", Relu{}, x, y);
}

template <class Grid>
void relu_backward(Grid&& grid, const ConstView& y, const ConstView& dy, float beta,
                   const View& dx) {
  activate_backward(grid, "relu_backward", ReluGradient{}, y, dy, beta, dx);
}

template <class Grid>
void sigmoid_forward(Grid&& grid, const ConstView& x, const View& y) {
  activate(grid, "sigmoid_forward", Sigmoid{}, x, y);
}

template <class Grid>
void sigmoid_backward(Grid&& grid, const ConstView& y, const ConstView& dy, float beta,
                      const View& dx) {
  activate_backward(grid, "sigmoid_backward", SigmoidGradient{}, y, dy, beta, dx);
}

template <class Grid>
void tanh_forward(Grid&& grid, const ConstView& x, const View& y) {
  activate(grid, "tanh_forward", Tanh{}, x, y);
}

template <class Grid>
void tanh_backward(Grid&& grid, const ConstView& y, const ConstView& dy, float beta,
                   const View& dx) {
  activate_backward(grid, "tanh_backward", TanhGradient{}, y, dy, beta, dx);
}

/// Floor: reads every element once, writes every element once: 6 N bytes.
template <class Grid>
void cast(Grid&& grid, const ConstView& x, const View& y) {
  reduction::visit_cast(x.dtype(), y.dtype(), [&]<class From, class To>(From, To) {
    grid.for_each_pack("cast", y.storage(), make_map(Same{}, y.as<To>(), x.as<From>()));
  });
}

/// Two casts as one: elements [0, first) of the launch are of the first.
template <class To, class From>
struct CastPair {
  const From *x, *second_x;
  To *y, *second_y;
  std::int64_t first;
  static constexpr int kPack = kPackOf<To, From>;

  bool takes_packs() const {
    return first % kPack == 0 && grid::takes_packs<kPack>(x, second_x, y, second_y);
  }
  template <int kWidth>
  RINGLET_HOST_DEVICE void apply(std::int64_t pack) const {
    const std::int64_t at = kWidth * pack;
    if (at < first) {
      store_pack(y + at, 0, load_pack<kWidth>(x + at, 0));
    } else {
      store_pack(second_y + (at - first), 0, load_pack<kWidth>(second_x + (at - first), 0));
    }
  }
};

/// Both have the same types. Floor: that of both casts.
template <class Grid>
void cast_pair(Grid&& grid, const ConstView& x, const View& y, const ConstView& second_x,
               const View& second_y) {
  reduction::visit_cast(x.dtype(), y.dtype(), [&]<class From, class To>(From, To) {
    grid.for_each_pack("cast", y.storage() + second_y.storage(),
                       CastPair<To, From>{x.as<From>(), second_x.as<From>(), y.as<To>(),
                                          second_y.as<To>(), y.storage()});
  });
}

/// y in nhwc.
struct NormalizeNhwc {
  Normalize normalize;
  Divisor features;  // of a sample
  Divisor channels;
  const std::uint8_t* x = nullptr;
  float* y = nullptr;

  RINGLET_HOST_DEVICE void operator()(std::int64_t i) const {
    const std::int64_t first = features.quotient(i) * features.divisor(), at = i - first;
    const std::int64_t pixel = channels.quotient(at), channel = at - pixel * channels.divisor();
    y[i] = normalize(x[first + channel * channels.quotient(features.divisor()) + pixel]);
  }
};

/// Floor: reads N bytes, writes 4 N.
template <class Grid>
void normalize_forward(Grid&& grid, const Normalization& normalization, const ConstView& x,
                       const View& y) {
  if (y.layout() == Layout::nhwc && !is_alike_in_nhwc(y.shape()) && y.count() > 0) {
    grid.for_each("normalize_forward", x.count(),
                  NormalizeNhwc{{normalization},
                                Divisor(x.shape().count_per_sample()),
                                Divisor(x.shape()[1]),
                                x.as<std::uint8_t>(),
                                y.f32()});
    return;
  }
  grid.for_each_pack("normalize_forward", x.count(),
                     make_map(Normalize{normalization}, y.f32(), x.as<std::uint8_t>()));
}

}  // namespace ringlet::grid
