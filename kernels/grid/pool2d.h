// The kernels of kernels/pool2d.h, for nchw. Backward gathers: each pixel asks the windows that
// contain it, in the order in which the CPU adds them, so that no atomics are needed and the sums
// have the same bits.
#pragma once

#include "kernels/elements.h"
#include "kernels/grid/divisor.h"
#include "kernels/grid/pool_window.h"
#include "kernels/pool2d.h"
#include "kernels/tensor.h"

namespace ringlet::grid {

/// One dimension of images and windows.
struct PoolAxis {
  std::int64_t kernel;
  Divisor stride;
  std::int64_t padding;
  Divisor pixels;
  Divisor outputs;

  RINGLET_HOST_DEVICE PoolWindow window(std::int64_t o) const {
    return pool_window(o, kernel, stride.divisor(), padding, pixels.divisor());
  }
  /// The first output whose window may contain `pixel`: the smallest o with
  /// o * stride - padding + kernel > pixel.
  RINGLET_HOST_DEVICE std::int64_t first_output(std::int64_t pixel) const {
    const std::int64_t above = pixel + padding - kernel;  // o * stride has to be larger
    return above < 0 ? 0 : stride.quotient(above) + 1;
  }
  /// One past the last output whose window begins at or before `pixel`.
  RINGLET_HOST_DEVICE std::int64_t end_output(std::int64_t pixel) const {
    const std::int64_t last = stride.quotient(pixel + padding);
    return last < outputs.divisor() ? last + 1 : outputs.divisor();
  }
};

/// Where an output or a pixel lies: images and outputs are planes of rows.
struct PlanePoint {
  std::int64_t plane;
  std::int64_t row;
  std::int64_t column;
};

RINGLET_HOST_DEVICE inline PlanePoint plane_point(const Divisor& rows, const Divisor& columns,
                                                  std::int64_t i) {
  const std::int64_t line = columns.quotient(i);
  const std::int64_t plane = rows.quotient(line);
  return {plane, line - plane * rows.divisor(), i - line * columns.divisor()};
}

struct PoolGeometry {
  PoolAxis h;
  PoolAxis w;
  bool count_include_pad;

  PoolGeometry(const Pool2dSpec& spec, const Shape& x, const Shape& y)
      : h{spec.kernel.h, Divisor(spec.stride.h), spec.padding.h, Divisor(x[2]), Divisor(y[2])},
        w{spec.kernel.w, Divisor(spec.stride.w), spec.padding.w, Divisor(x[3]), Divisor(y[3])},
        count_include_pad(spec.count_include_pad) {}

  RINGLET_HOST_DEVICE PlanePoint output(std::int64_t o) const {
    return plane_point(h.outputs, w.outputs, o);
  }
  RINGLET_HOST_DEVICE PlanePoint pixel(std::int64_t i) const {
    return plane_point(h.pixels, w.pixels, i);
  }
  /// Index of a plane's first pixel, and of its first output.
  RINGLET_HOST_DEVICE std::int64_t plane_pixels(std::int64_t plane) const {
    return plane * h.pixels.divisor() * w.pixels.divisor();
  }
  RINGLET_HOST_DEVICE std::int64_t plane_outputs(std::int64_t plane) const {
    return plane * h.outputs.divisor() * w.outputs.divisor();
  }
  RINGLET_HOST_DEVICE float divisor(const PoolWindow& rows, const PoolWindow& columns) const {
    const std::int64_t count = count_include_pad
                                   ? rows.counted * columns.counted
                                   : (rows.end - rows.begin) * (columns.end - columns.begin);
    return static_cast<float>(count);
  }
};

/// 2 x 2 windows side by side that all lie within the image, the usual ones: their four loads are
/// under way at the same time, and need no loops.
inline bool are_halves(const Pool2dSpec& spec, const Shape& x, const Shape& y) {
  return spec.kernel == Extent2{2, 2} && spec.stride == Extent2{2, 2} &&
         spec.padding == Extent2{0, 0} && 2 * y[2] <= x[2] && 2 * y[3] <= x[3];
}

struct AveragePool {
  PoolGeometry g;
  const float* x = nullptr;
  float* y = nullptr;

  RINGLET_HOST_DEVICE void operator()(std::int64_t o) const {
    const PlanePoint at = g.output(o);
    const PoolWindow rows = g.h.window(at.row), columns = g.w.window(at.column);
    const float* plane = x + g.plane_pixels(at.plane);
    float sum = 0;
    for (std::int64_t r = rows.begin; r < rows.end; ++r) {
      for (std::int64_t c = columns.begin; c < columns.end; ++c) {
        sum += plane[r * g.w.pixels.divisor() + c];
      }
    }
    y[o] = sum / g.divisor(rows, columns);
  }
};

struct AverageHalves {
  PoolGeometry g;
  const float* x = nullptr;
  float* y = nullptr;

  RINGLET_HOST_DEVICE void operator()(std::int64_t o) const {
    const PlanePoint at = g.output(o);
    const std::int64_t width = g.w.pixels.divisor();
    const float* above = x + g.plane_pixels(at.plane) + 2 * at.row * width + 2 * at.column;
    const float* below = above + width;
    y[o] = 0.25F * (above[0] + above[1] + below[0] + below[1]);
  }
};

/// Floor: reads 4 bytes a pixel in a window, writes 4 an output.
template <class Grid>
void avg_pool2d_forward(Grid&& grid, const Pool2dSpec& spec, const ConstView& x, const View& y) {
  constexpr const char* kName = "avg_pool2d_forward";
  const PoolGeometry g(spec, x.shape(), y.shape());
  if (are_halves(spec, x.shape(), y.shape())) {
    grid.for_each(kName, y.count(), AverageHalves{g, x.f32(), y.f32()});
  } else {
    grid.for_each(kName, y.count(), AveragePool{g, x.f32(), y.f32()});
  }
}

/// dx = beta * dx + sum over the windows with this pixel of share(output, windows' geometry).
template <class Share>
struct PoolBackward {
  PoolGeometry g;
  Share share;
  float beta = 0;
  float* dx = nullptr;

  RINGLET_HOST_DEVICE void operator()(std::int64_t i) const {
    const PlanePoint at = g.pixel(i);
    const std::int64_t row_end = g.h.end_output(at.row), column_end = g.w.end_output(at.column);
    const std::int64_t first_column = g.w.first_output(at.column);
    const auto pixel = static_cast<std::int32_t>(at.row * g.w.pixels.divisor() + at.column);
    float total = beta == 0 ? 0.0F : beta * dx[i];
    for (std::int64_t r = g.h.first_output(at.row); r < row_end; ++r) {
      for (std::int64_t c = first_column; c < column_end; ++c) {
        const std::int64_t o = g.plane_outputs(at.plane) + r * g.w.outputs.divisor() + c;
        total += share(g, o, r, c, pixel);
      }
    }
    dx[i] = total;
  }
};

struct AverageShare {
  const float* dy;
  RINGLET_HOST_DEVICE float operator()(const PoolGeometry& g, std::int64_t o, std::int64_t row,
                                       std::int64_t column, std::int32_t) const {
    return dy[o] / g.divisor(g.h.window(row), g.w.window(column));
  }
};

struct WinnersShare {
  const float* dy;
  const std::int32_t* winner;
  RINGLET_HOST_DEVICE float operator()(const PoolGeometry&, std::int64_t o, std::int64_t,
                                       std::int64_t, std::int32_t pixel) const {
    return winner[o] == pixel ? dy[o] : 0.0F;
  }
};

/// Floor: reads 4 bytes an output, writes 4 a pixel; with a beta, reads 4 a pixel.
template <class Grid>
void avg_pool2d_backward(Grid&& grid, const Pool2dSpec& spec, const ConstView& dy, float beta,
                         const View& dx) {
  const PoolGeometry g(spec, dx.shape(), dy.shape());
  grid.for_each("avg_pool2d_backward", dx.count(),
                PoolBackward<AverageShare>{g, {dy.f32()}, beta, dx.f32()});
}

struct MaximumPool {
  PoolGeometry g;
  const float* x = nullptr;
  float* y = nullptr;
  std::int32_t* winner = nullptr;

  RINGLET_HOST_DEVICE void operator()(std::int64_t o) const {
    const PlanePoint at = g.output(o);
    const PoolWindow rows = g.h.window(at.row), columns = g.w.window(at.column);
    const std::int64_t width = g.w.pixels.divisor();
    const float* plane = x + g.plane_pixels(at.plane);
    std::int64_t best = rows.begin * width + columns.begin;
    float largest = plane[best];
    for (std::int64_t r = rows.begin; r < rows.end; ++r) {
      for (std::int64_t c = columns.begin; c < columns.end; ++c) {
        const float value = plane[r * width + c];
        if (!element::beats(value, largest)) continue;
        best = r * width + c;
        largest = value;
      }
    }
    y[o] = largest;
    winner[o] = static_cast<std::int32_t>(best);
  }
};

struct MaximumHalves {
  PoolGeometry g;
  const float* x = nullptr;
  float* y = nullptr;
  std::int32_t* winner = nullptr;

  RINGLET_HOST_DEVICE void operator()(std::int64_t o) const {
    const PlanePoint at = g.output(o);
    const std::int64_t width = g.w.pixels.divisor();
    const std::int64_t origin = 2 * at.row * width + 2 * at.column;
    const float* first = x + g.plane_pixels(at.plane) + origin;
    const float values[4] = {first[0], first[1], first[width], first[width + 1]};
    const std::int64_t offsets[4] = {0, 1, width, width + 1};
    float largest = values[0];
    std::int64_t offset = 0;
    for (int k = 1; k < 4; ++k) {
      const bool better = element::beats(values[k], largest);
      largest = better ? values[k] : largest;
      offset = better ? offsets[k] : offset;
    }
    y[o] = largest;
    winner[o] = static_cast<std::int32_t>(origin + offset);
  }
};

/// Floor: reads 4 bytes a pixel in a window, writes 8 an output.
template <class Grid>
void max_pool2d_forward(Grid&& grid, const Pool2dSpec& spec, const ConstView& x, const View& y,
                        const View& winner) {
  constexpr const char* kName = "max_pool2d_forward";
  const PoolGeometry g(spec, x.shape(), y.shape());
  auto* winners = winner.as<std::int32_t>();
  if (are_halves(spec, x.shape(), y.shape())) {
    grid.for_each(kName, y.count(), MaximumHalves{g, x.f32(), y.f32(), winners});
  } else {
    grid.for_each(kName, y.count(), MaximumPool{g, x.f32(), y.f32(), winners});
  }
}

/// Floor: reads 8 bytes an output, writes 4 a pixel; with a beta, reads 4 a pixel.
template <class Grid>
void max_pool2d_backward(Grid&& grid, const Pool2dSpec& spec, const ConstView& dy,
                         const ConstView& winner, float beta, const View& dx) {
  const PoolGeometry g(spec, dx.shape(), dy.shape());
  grid.for_each(
      "max_pool2d_backward", dx.count(),
      PoolBackward<WinnersShare>{g, {dy.f32(), winner.as<std::int32_t>()}, beta, dx.f32()});
}

}  // namespace ringlet::grid
