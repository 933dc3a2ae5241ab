// Pooling in nchw, one plane of one sample at a time. The common 2x2 windows side by side have
// loops of their own, which compilers turn into vector instructions; all others take the general
// one.
#include "kernels/pool2d.h"

#include <algorithm>

#include "kernels/cpu/lanes/lanes.h"
#include "kernels/cpu/loops.h"
#include "kernels/elements.h"
#include "kernels/grid/pool_window.h"

namespace ringlet::impl {

namespace {

using Window = PoolWindow<std::int64_t>;

struct Geometry {
  Pool2dSpec spec;
  std::int64_t planes;  // N * C
  std::int64_t height, width;
  std::int64_t out_h, out_w;

  Geometry(const Pool2dSpec& pool, const Shape& x, const Shape& y)
      : spec(pool), planes(x[0] * x[1]), height(x[2]), width(x[3]), out_h(y[2]), out_w(y[3]) {}

  std::int64_t pixels() const { return height * width; }
  std::int64_t out_pixels() const { return out_h * out_w; }
  Window rows(std::int64_t i) const {
    return pool_window<std::int64_t>(i, spec.kernel.h, spec.stride.h, spec.padding.h, height);
  }
  Window columns(std::int64_t j) const {
    return pool_window<std::int64_t>(j, spec.kernel.w, spec.stride.w, spec.padding.w, width);
  }
  float divisor(const Window& r, const Window& c) const {
    const std::int64_t count =
        spec.count_include_pad ? r.counted * c.counted : (r.end - r.begin) * (c.end - c.begin);
    return static_cast<float>(count);
  }
  /// 2x2 windows side by side that all lie within the image.
  bool halves() const {
    return spec.kernel == Extent2{2, 2} && spec.stride == Extent2{2, 2} &&
           spec.padding == Extent2{0, 0} && 2 * out_h <= height && 2 * out_w <= width;
  }
};

/// Calls f(output pixel, row window, column window) for one plane.
template <class F>
void for_each_window(const Geometry& g, F f) {
  for (std::int64_t i = 0; i < g.out_h; ++i) {
    const Window rows = g.rows(i);
    for (std::int64_t j = 0; j < g.out_w; ++j) f(i * g.out_w + j, rows, g.columns(j));
  }
}

void average_plane(const Geometry& g, const float* x, float* y) {
  for_each_window(g, [=, &g](std::int64_t o, const Window& rows, const Window& columns) {
    float sum = 0;
    for (std::int64_t h = rows.begin; h < rows.end; ++h) {
      for (std::int64_t w = columns.begin; w < columns.end; ++w) sum += x[h * g.width + w];
    }
    y[o] = sum / g.divisor(rows, columns);
  });
}

void average_halves(const Geometry& g, const float* x, float* y) {
  for (std::int64_t i = 0; i < g.out_h; ++i) {
    const float* above = x + 2 * i * g.width;
    const float* below = above + g.width;
    float* row = y + i * g.out_w;
#pragma omp simd
    for (std::int64_t j = 0; j < g.out_w; ++j) {
      row[j] = 0.25F * (above[2 * j] + above[2 * j + 1] + below[2 * j] + below[2 * j + 1]);
    }
  }
}

void spread_plane(const Geometry& g, const float* dy, float* dx) {
  for_each_window(g, [=, &g](std::int64_t o, const Window& rows, const Window& columns) {
    const float share = dy[o] / g.divisor(rows, columns);
    for (std::int64_t h = rows.begin; h < rows.end; ++h) {
      for (std::int64_t w = columns.begin; w < columns.end; ++w) dx[h * g.width + w] += share;
    }
  });
}

void spread_halves(const Geometry& g, const float* dy, float* dx) {
  for (std::int64_t i = 0; i < g.out_h; ++i) {
    float* above = dx + 2 * i * g.width;
    float* below = above + g.width;
    const float* row = dy + i * g.out_w;
#pragma omp simd
    for (std::int64_t j = 0; j < g.out_w; ++j) {
      const float share = 0.25F * row[j];
      above[2 * j] += share;
      above[2 * j + 1] += share;
      below[2 * j] += share;
      below[2 * j + 1] += share;
    }
  }
}

void maximum_plane(const Geometry& g, const float* x, float* y, std::int32_t* winner) {
  for_each_window(g, [=, &g](std::int64_t o, const Window& rows, const Window& columns) {
    std::int64_t best = rows.begin * g.width + columns.begin;
    for (std::int64_t h = rows.begin; h < rows.end; ++h) {
      for (std::int64_t w = columns.begin; w < columns.end; ++w) {
        if (element::beats(x[h * g.width + w], x[best])) best = h * g.width + w;
      }
    }
    y[o] = x[best];
    winner[o] = static_cast<std::int32_t>(best);
  });
}

void maximum_halves(const Geometry& g, const float* x, float* y, std::int32_t* winner) {
  const auto width = static_cast<std::int32_t>(g.width), out_w = static_cast<std::int32_t>(g.out_w);
  for (std::int64_t i = 0; i < g.out_h; ++i) {
    const auto origin = static_cast<std::int32_t>(2 * i * g.width);
    const float* above = x + origin;
    const float* below = above + g.width;
    float* row = y + i * g.out_w;
    std::int32_t* winners = winner + i * g.out_w;
#pragma omp simd
    for (std::int32_t j = 0; j < out_w; ++j) {
      const float candidates[3] = {above[2 * j + 1], below[2 * j], below[2 * j + 1]};
      const std::int32_t offsets[3] = {1, width, width + 1};
      float best = above[2 * j];
      std::int32_t offset = 0;
      for (int k = 0; k < 3; ++k) {
        const bool better = element::beats(candidates[k], best);
        best = better ? candidates[k] : best;
        offset = better ? offsets[k] : offset;
      }
      row[j] = best;
      winners[j] = origin + 2 * j + offset;
    }
  }
}

void scale_plane(const Geometry& g, float beta, float* dx) {
  if (beta == 0) {
    std::fill_n(dx, g.pixels(), 0.0F);
  } else if (beta != 1) {
    for (std::int64_t i = 0; i < g.pixels(); ++i) dx[i] *= beta;
  }
}

}  // namespace

void avg_pool2d_forward(CpuStream& stream, const Pool2dSpec& spec, const ConstView& x_view,
                        const View& y_view) {
  if (in_lanes(x_view)) {
    return lanes::avg_pool2d_forward(stream, spec, x_view, y_view);
  }
  const Geometry g(spec, x_view.shape(), y_view.shape());
  const float* x = x_view.f32();
  float* y = y_view.f32();
  for_each_item(stream, g.planes, [=](std::int64_t plane) {
    const auto average = g.halves() ? average_halves : average_plane;
    average(g, x + plane * g.pixels(), y + plane * g.out_pixels());
  });
}

void avg_pool2d_backward(CpuStream& stream, const Pool2dSpec& spec, const ConstView& dy_view,
                         float beta, const View& dx_view) {
  if (in_lanes(dy_view)) {
    return lanes::avg_pool2d_backward(stream, spec, dy_view, beta, dx_view);
  }
  const Geometry g(spec, dx_view.shape(), dy_view.shape());
  const float* dy = dy_view.f32();
  float* dx = dx_view.f32();
  for_each_item(stream, g.planes, [=](std::int64_t plane) {
    float* dx_plane = dx + plane * g.pixels();
    scale_plane(g, beta, dx_plane);
    const auto spread = g.halves() ? spread_halves : spread_plane;
    spread(g, dy + plane * g.out_pixels(), dx_plane);
  });
}

void max_pool2d_forward(CpuStream& stream, const Pool2dSpec& spec, const ConstView& x_view,
                        const View& y_view, const View& winner_view) {
  if (in_lanes(x_view)) {
    return lanes::max_pool2d_forward(stream, spec, x_view, y_view, winner_view);
  }
  const Geometry g(spec, x_view.shape(), y_view.shape());
  const float* x = x_view.f32();
  float* y = y_view.f32();
  auto* winner = winner_view.as<std::int32_t>();
  for_each_item(stream, g.planes, [=](std::int64_t plane) {
    const auto maximum = g.halves() ? maximum_halves : maximum_plane;
    maximum(g, x + plane * g.pixels(), y + plane * g.out_pixels(), winner + plane * g.out_pixels());
  });
}

void max_pool2d_backward(CpuStream& stream, const Pool2dSpec& spec, const ConstView& dy_view,
                         const ConstView& winner_view, float beta, const View& dx_view) {
  if (in_lanes(dy_view)) {
    return lanes::max_pool2d_backward(stream, spec, dy_view, winner_view, beta, dx_view);
  }
  const Geometry g(spec, dx_view.shape(), dy_view.shape());
  const float* dy = dy_view.f32();
  const auto* winner = winner_view.as<std::int32_t>();
  float* dx = dx_view.f32();
  for_each_item(stream, g.planes, [=](std::int64_t plane) {
    const float* dy_plane = dy + plane * g.out_pixels();
    const std::int32_t* winners = winner + plane * g.out_pixels();
    float* dx_plane = dx + plane * g.pixels();
    scale_plane(g, beta, dx_plane);
    for (std::int64_t o = 0; o < g.out_pixels(); ++o) dx_plane[winners[o]] += dy_plane[o];
  });
}

}  // namespace ringlet::impl
