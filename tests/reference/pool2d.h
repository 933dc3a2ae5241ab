// The pooling of kernels/pool2d.h, said as plainly as possible. All values in N, C, H, W order;
// T is float or double.
#pragma once

#include <cstdint>
#include <vector>

#include "kernels/pool2d.h"

namespace ringlet::test::reference {

/// One window: the image's pixels in it (indices into x, row by row), and the average's divisor.
struct Window {
  std::vector<std::int64_t> pixels;
  std::int64_t plane;  // index in x of the plane's first pixel
  std::int64_t divisor;
};

/// The windows of all outputs, in the order of y.
inline std::vector<Window> windows_of(const Pool2dSpec& spec, const Shape& x) {
  const Shape y = pool2d_output_shape(spec, x);
  std::vector<Window> windows;
  for (std::int64_t plane = 0; plane < y[0] * y[1]; ++plane)
    for (std::int64_t i = 0; i < y[2]; ++i)
      for (std::int64_t j = 0; j < y[3]; ++j) {
        Window window{{}, plane * x[2] * x[3], 0};
        for (std::int64_t p = 0; p < spec.kernel.h; ++p)
          for (std::int64_t q = 0; q < spec.kernel.w; ++q) {
            const std::int64_t h = i * spec.stride.h - spec.padding.h + p;
            const std::int64_t w = j * spec.stride.w - spec.padding.w + q;
            const bool in_image = h >= 0 && h < x[2] && w >= 0 && w < x[3];
            const bool beyond = h >= x[2] + spec.padding.h || w >= x[3] + spec.padding.w;
            if (in_image) window.pixels.push_back(window.plane + h * x[3] + w);
            if (in_image || (spec.count_include_pad && !beyond)) ++window.divisor;
          }
        windows.push_back(window);
      }
  return windows;
}

template <class T>
std::vector<T> avg_pool2d_forward(const Pool2dSpec& spec, const Shape& x_shape,
                                  const std::vector<T>& x) {
  std::vector<T> y;
  for (const Window& window : windows_of(spec, x_shape)) {
    T sum = 0;
    for (const auto pixel : window.pixels) sum += x[pixel];
    y.push_back(sum / static_cast<T>(window.divisor));
  }
  return y;
}

template <class T>
std::vector<T> avg_pool2d_backward(const Pool2dSpec& spec, const Shape& x_shape,
                                   const std::vector<T>& dy) {
  std::vector<T> dx(x_shape.count());
  const std::vector<Window> windows = windows_of(spec, x_shape);
  for (std::size_t o = 0; o < windows.size(); ++o) {
    for (const auto pixel : windows[o].pixels) {
      dx[pixel] += dy[o] / static_cast<T>(windows[o].divisor);
    }
  }
  return dx;
}

/// For each output the winning pixel, as an index into x; a NaN is not equal to itself.
template <class T>
std::vector<std::int64_t> winners_of(const Pool2dSpec& spec, const Shape& x_shape,
                                     const std::vector<T>& x) {
  std::vector<std::int64_t> winners;
  for (const Window& window : windows_of(spec, x_shape)) {
    std::int64_t best = window.pixels.front();
    for (const auto pixel : window.pixels) {
      if (x[pixel] > x[best] || x[pixel] != x[pixel]) best = pixel;
    }
    winners.push_back(best);
  }
  return winners;
}

template <class T>
std::vector<T> max_pool2d_forward(const Pool2dSpec& spec, const Shape& x_shape,
                                  const std::vector<T>& x) {
  std::vector<T> y;
  for (const auto winner : winners_of(spec, x_shape, x)) y.push_back(x[winner]);
  return y;
}

template <class T>
std::vector<T> max_pool2d_backward(const Pool2dSpec& spec, const Shape& x_shape,
                                   const std::vector<T>& x, const std::vector<T>& dy) {
  std::vector<T> dx(x_shape.count());
  const std::vector<std::int64_t> winners = winners_of(spec, x_shape, x);
  for (std::size_t o = 0; o < winners.size(); ++o) dx[winners[o]] += dy[o];
  return dx;
}

}  // namespace ringlet::test::reference
