// The kernels of kernels/pool2d.h, for nchw; pool2d_nhwc.h has those for nhwc. Backward gathers:
// each pixel asks the windows that contain it, in the order in which the CPU adds them, so that no
// atomics are needed and the sums have the same bits. Windows side by side need no asking: there
// each output writes its pixels.
#pragma once

#include <cstdint>

#include "kernels/elements.h"
#include "kernels/grid/pack.h"
#include "kernels/grid/pool2d_nhwc.h"
#include "kernels/grid/pool_geometry.h"
#include "kernels/pool2d.h"
#include "kernels/tensor.h"

namespace ringlet::grid {

template <class T, class I>
struct AveragePool {
  PoolGeometry<I> g;
  const T* x = nullptr;
  T* y = nullptr;

  RINGLET_HOST_DEVICE void operator()(std::int64_t o) const {
    const PlanePoint<I> at = g.output(o);
    const PoolWindow<I> rows = g.h.window(at.row), columns = g.w.window(at.column);
    const T* plane = x + g.plane_pixels(at.plane);
    float sum = 0;
    for (I r = rows.begin; r < rows.end; ++r) {
      for (I c = columns.begin; c < columns.end; ++c) sum += load(plane[r * g.width() + c]);
    }
    store(y[o], sum / g.divisor(rows, columns));
  }
};

template <class T, class I>
struct AverageHalves {
  PoolGeometry<I> g;
  const T* x = nullptr;
  T* y = nullptr;

  RINGLET_HOST_DEVICE void operator()(std::int64_t o) const {
    const PlanePoint<I> at = g.output(o);
    const T* above = x + g.plane_pixels(at.plane) + 2 * at.row * g.width() + 2 * at.column;
    const T* below = above + g.width();
    store(y[o], 0.25F * (load(above[0]) + load(above[1]) + load(below[0]) + load(below[1])));
  }
};

/// Floor: reads 4 bytes a pixel in a window, writes 4 an output.
template <class Grid>
void avg_pool2d_forward(Grid&& grid, const Pool2dSpec& spec, const ConstView& x, const View& y) {
  constexpr const char* kName = "avg_pool2d_forward";
  if (x.layout() == Layout::nhwc) return avg_pool2d_forward_nhwc(grid, kName, spec, x, y);
  const bool halves = are_halves(spec, x.shape(), y.shape());
  reduction::visit_activations(x.dtype(), [&]<class T>(T) {
    with_geometry(spec, x.shape(), y.shape(), [&]<class I>(const PoolGeometry<I>& g) {
      if (halves) {
        grid.for_each(kName, y.count(), AverageHalves<T, I>{g, x.as<T>(), y.as<T>()});
      } else {
        grid.for_each(kName, y.count(), AveragePool<T, I>{g, x.as<T>(), y.as<T>()});
      }
    });
  });
}

/// What a gradient begins with.
RINGLET_HOST_DEVICE inline float start_of(float beta, float old_value) {
  return beta == 0 ? 0.0F : beta * old_value;
}

/// dx = beta * dx + sum over the windows with this pixel of share.of(output, windows' geometry).
template <class T, class I, class Share>
struct PoolBackward {
  PoolGeometry<I> g;
  Share share;
  float beta = 0;
  T* dx = nullptr;

  RINGLET_HOST_DEVICE void operator()(std::int64_t i) const {
    const PlanePoint<I> at = g.pixel(i);
    const I row_end = g.h.end_output(at.row), column_end = g.w.end_output(at.column);
    const I first_column = g.w.first_output(at.column);
    const auto pixel = static_cast<std::int32_t>(at.row * g.width() + at.column);
    float total = beta == 0 ? 0.0F : beta * load(dx[i]);
    RINGLET_ROLLED
    for (I r = g.h.first_output(at.row); r < row_end; ++r) {
      RINGLET_ROLLED
      for (I c = first_column; c < column_end; ++c) {
        const I o = g.plane_outputs(at.plane) + r * g.w.output_count() + c;
        total += share.of(g, o, r, c, pixel);
      }
    }
    store(dx[i], total);
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

  template <class I>
  RINGLET_HOST_DEVICE float of(const PoolGeometry<I>& g, I o, I row, I column, std::int32_t) const {
    return load(dy[o]) / g.divisor(g.h.window(row), g.w.window(column));
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

  template <class I>
  RINGLET_HOST_DEVICE float of(const PoolGeometry<I>&, I o, I, I, std::int32_t pixel) const {
    return winner[o] == pixel ? load(dy[o]) : 0.0F;
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
  if (are_halves(spec, x, y) && has_small_indices(x)) {
    const PoolGeometry<std::int32_t> g(spec, x, y);
    if (takes_pairs<T>(dx)) {
      grid.for_each(name, y.count(), HalvesBackward<T, 2, Share>{g, share, beta, dx.as<T>()});
    } else {
      grid.for_each(name, y.count(), HalvesBackward<T, 1, Share>{g, share, beta, dx.as<T>()});
    }
  } else {
    with_geometry(spec, x, y, [&]<class I>(const PoolGeometry<I>& g) {
      grid.for_each(name, x.count(), PoolBackward<T, I, Share>{g, share, beta, dx.as<T>()});
    });
  }
}

/// Floor: reads 4 bytes an output, writes 4 a pixel; with a beta, reads 4 a pixel.
template <class Grid>
void avg_pool2d_backward(Grid&& grid, const Pool2dSpec& spec, const ConstView& dy, float beta,
                         const View& dx) {
  constexpr const char* kName = "avg_pool2d_backward";
  reduction::visit_activations(dx.dtype(), [&]<class T>(T) {
    const T* const gradient = dy.as<T>();
    if (dx.layout() == Layout::nhwc) {
      pool2d_backward_nhwc<T>(grid, kName, spec, dy.shape(), AverageShareNhwc<T>{gradient}, beta,
                              dx);
    } else {
      pool2d_backward<T>(grid, kName, spec, dy.shape(), AverageShare<T>{gradient}, beta, dx);
    }
  });
}

template <class T, class I>
struct MaximumPool {
  PoolGeometry<I> g;
  const T* x = nullptr;
  T* y = nullptr;
  std::int32_t* winner = nullptr;

  RINGLET_HOST_DEVICE void operator()(std::int64_t o) const {
    const PlanePoint<I> at = g.output(o);
    const PoolWindow<I> rows = g.h.window(at.row), columns = g.w.window(at.column);
    const T* plane = x + g.plane_pixels(at.plane);
    I best = rows.begin * g.width() + columns.begin;
    float largest = load(plane[best]);
    for (I r = rows.begin; r < rows.end; ++r) {
      for (I c = columns.begin; c < columns.end; ++c) {
        const float value = load(plane[r * g.width() + c]);
        if (!element::beats(value, largest)) continue;
        best = r * g.width() + c;
        largest = value;
      }
    }
    store(y[o], largest);
    winner[o] = static_cast<std::int32_t>(best);
  }
};

template <class T, class I>
struct MaximumHalves {
  PoolGeometry<I> g;
  const T* x = nullptr;
  T* y = nullptr;
  std::int32_t* winner = nullptr;

  RINGLET_HOST_DEVICE void operator()(std::int64_t o) const {
    const PlanePoint<I> at = g.output(o);
    const I width = g.width(), origin = 2 * at.row * width + 2 * at.column;
    const T* first = x + g.plane_pixels(at.plane) + origin;
    const float values[4] = {load(first[0]), load(first[1]), load(first[width]),
                             load(first[width + 1])};
    const I offsets[4] = {0, 1, width, width + 1};
    float largest = values[0];
    I offset = 0;
    for (int k = 1; k < 4; ++k) {
      const bool better = element::beats(values[k], largest);
      largest = better ? values[k] : largest;
      offset = better ? offsets[k] : offset;
    }
    store(y[o], largest);
    winner[o] = static_cast<std::int32_t>(origin + offset);
  }
};

/// Floor: reads 4 bytes a pixel in a window, writes 8 an output.
template <class Grid>
void max_pool2d_forward(Grid&& grid, const Pool2dSpec& spec, const ConstView& x, const View& y,
                        const View& winner) {
  constexpr const char* kName = "max_pool2d_forward";
  auto* winners = winner.as<std::int32_t>();
  if (x.layout() == Layout::nhwc) {
    return max_pool2d_forward_nhwc(grid, kName, spec, x, y, winners);
  }
  const bool halves = are_halves(spec, x.shape(), y.shape());
  reduction::visit_activations(x.dtype(), [&]<class T>(T) {
    with_geometry(spec, x.shape(), y.shape(), [&]<class I>(const PoolGeometry<I>& g) {
      if (halves) {
        grid.for_each(kName, y.count(), MaximumHalves<T, I>{g, x.as<T>(), y.as<T>(), winners});
      } else {
        grid.for_each(kName, y.count(), MaximumPool<T, I>{g, x.as<T>(), y.as<T>(), winners});
      }
    });
  });
}

/// Floor: reads 8 bytes an output, writes 4 a pixel; with a beta, reads 4 a pixel.
template <class Grid>
void max_pool2d_backward(Grid&& grid, const Pool2dSpec& spec, const ConstView& dy,
                         const ConstView& winner, float beta, const View& dx) {
  constexpr const char* kName = "max_pool2d_backward";
  const auto* winners = winner.as<std::int32_t>();
  reduction::visit_activations(dx.dtype(), [&]<class T>(T) {
    const T* const gradient = dy.as<T>();
    if (dx.layout() == Layout::nhwc) {
      pool2d_backward_nhwc<T>(grid, kName, spec, dy.shape(), WinnersShareNhwc<T>{gradient, winners},
                              beta, dx);
    } else {
      pool2d_backward<T>(grid, kName, spec, dy.shape(), WinnersShare<T>{gradient, winners}, beta,
                         dx);
    }
  });
}

}  // namespace ringlet::grid
