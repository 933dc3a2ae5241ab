// Pooling of one plane, and the sums and additions that biases need. Memory bounds all of these.
#pragma once

#include "kernels/cpu/lanes/arguments.h"
#include "kernels/cpu/lanes/tile.h"

namespace ringlet::lanes {

/// The part of a window that lies inside the image, and the number that an average divides by.
struct Window {
  std::int64_t top, bottom, left, right;
  float divisor;
};

template <class S>
[[gnu::always_inline]] inline std::int64_t lesser(std::int64_t a, std::int64_t b) {
  return a < b ? a : b;
}

template <class S>
[[gnu::always_inline]] inline Window window_at(const PoolArguments& a, std::int64_t i,
                                               std::int64_t j) {
  const std::int64_t top = i * a.stride_h - a.pad_h;
  const std::int64_t left = j * a.stride_w - a.pad_w;
  Window window{};
  window.top = top > 0 ? top : 0;
  window.left = left > 0 ? left : 0;
  window.bottom = lesser<S>(top + a.kernel_h, a.height);
  window.right = lesser<S>(left + a.kernel_w, a.width);
  const std::int64_t padded = (lesser<S>(top + a.kernel_h, a.height + a.pad_h) - top) *
                              (lesser<S>(left + a.kernel_w, a.width + a.pad_w) - left);
  const std::int64_t inside = (window.bottom - window.top) * (window.right - window.left);
  window.divisor = static_cast<float>(a.count_include_pad ? padded : inside);
  return window;
}

template <class S>
void avg_pool_forward(const PoolArguments& arguments) {
  const PoolArguments a = arguments;
  float* y = a.to;
  for (std::int64_t i = 0; i < a.out_height; ++i) {
    for (std::int64_t j = 0; j < a.out_width; ++j, y += 16) {
      const Window window = window_at<S>(a, i, j);
      for (int lane = 0; lane < 16; lane += S::kWidth) {
        typename S::Vector total{};
        for (std::int64_t h = window.top; h < window.bottom; ++h) {
          for (std::int64_t w = window.left; w < window.right; ++w) {
            total += load<S>(a.from + (h * a.width + w) * 16 + lane);
          }
        }
        store<S>(y + lane, total * (1.0F / window.divisor));
      }
    }
  }
}

/// x = beta * x, which clears it when beta is 0.
template <class S>
[[gnu::always_inline]] inline void scale_plane(float* x, float beta, std::int64_t count) {
  if (beta == 1) return;
  for (std::int64_t at = 0; at < count; at += S::kWidth) {
    store<S>(x + at, beta == 0 ? typename S::Vector{} : beta * load<S>(x + at));
  }
}

/// dx = beta * dx + dy / divisor for each pixel of the window.
template <class S>
void avg_pool_backward(const PoolArguments& arguments) {
  const PoolArguments a = arguments;
  scale_plane<S>(a.to, a.beta, a.height * a.width * 16);
  const float* dy = a.from;
  for (std::int64_t i = 0; i < a.out_height; ++i) {
    for (std::int64_t j = 0; j < a.out_width; ++j, dy += 16) {
      const Window window = window_at<S>(a, i, j);
      for (int lane = 0; lane < 16; lane += S::kWidth) {
        const typename S::Vector part = load<S>(dy + lane) * (1.0F / window.divisor);
        for (std::int64_t h = window.top; h < window.bottom; ++h) {
          for (std::int64_t w = window.left; w < window.right; ++w) {
            float* const to = a.to + (h * a.width + w) * 16 + lane;
            store<S>(to, load<S>(to) + part);
          }
        }
      }
    }
  }
}

/// The first of equal pixels wins, and a NaN wins over numbers.
template <class S>
void max_pool_forward(const PoolArguments& arguments) {
  const PoolArguments a = arguments;
  float* y = a.to;
  std::int32_t* winner = a.winner;
  for (std::int64_t i = 0; i < a.out_height; ++i) {
    for (std::int64_t j = 0; j < a.out_width; ++j, y += 16, winner += 16) {
      const Window window = window_at<S>(a, i, j);
      for (int lane = 0; lane < 16; lane += S::kWidth) {
        const auto first = static_cast<std::int32_t>(window.top * a.width + window.left);
        typename S::Vector best = load<S>(a.from + first * 16 + lane);
        typename S::Integers index = first - typename S::Integers{};
        for (std::int64_t h = window.top; h < window.bottom; ++h) {
          for (std::int64_t w = window.left; w < window.right; ++w) {
            const auto pixel = static_cast<std::int32_t>(h * a.width + w);
            const typename S::Vector v = load<S>(a.from + std::int64_t{pixel} * 16 + lane);
            const typename S::Integers better = (v > best) | (v != v);
            best = better ? v : best;
            index = better ? pixel - typename S::Integers{} : index;
          }
        }
        store<S>(y + lane, best);
        *reinterpret_cast<typename S::UnalignedIntegers*>(winner + lane) = index;
      }
    }
  }
}

template <class S>
void add_number(const float* x, float b, float* y, std::int64_t count) {
  for (std::int64_t at = 0; at < count; at += S::kWidth) store<S>(y + at, load<S>(x + at) + b);
}

/// Four running sums, so that no addition waits for the one before it.
template <class S>
float sum(const float* x, std::int64_t planes, std::int64_t stride, std::int64_t count) {
  typename S::Vector total[4] = {};
  for (std::int64_t plane = 0; plane < planes; ++plane) {
    const float* const from = x + plane * stride;
    std::int64_t at = 0;
    for (; at + 4 * S::kWidth <= count; at += 4 * S::kWidth) {
      unroll<4>([&](auto part) __attribute__((always_inline)) {
        total[part] += load<S>(from + at + part * S::kWidth);
      });
    }
    for (; at < count; at += S::kWidth) total[0] += load<S>(from + at);
  }
  return S::sum((total[0] + total[1]) + (total[2] + total[3]));
}

}  // namespace ringlet::lanes
