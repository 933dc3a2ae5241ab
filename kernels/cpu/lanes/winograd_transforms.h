// Winograd's convolution F(4x4, 3x3), sixteen samples in the lanes: the transforms.
//
// A correlation of 6 inputs with 3 weights to 4 outputs is a product of polynomials. It is
// evaluated at six points, 0, +-a, +-b and infinity, where 6 multiplications do what took 12. In
// two dimensions 36 do what took 144:
//
//   outputs   Y  = A^T [ (G W G^T) . (B^T D B) ] A       D 6 x 6 inputs, W 3 x 3, Y 4 x 4
//   weights   dW = G^T [ (A dY A^T) . (B^T D B) ] G      "." element by element
//
// Between the brackets channels are summed, which makes each point a matrix product.
//
// The usual points are +-1 and +-2. With +-3/4 and +-3/2 all matrices but G are exact in binary,
// and the error is half as large: of normal numbers, relative to the results (root mean square),
// 0.8e-6 over 64 channels and 2.1e-6 over 512, where products summed in order have 0.4e-6 and
// 1.2e-6 (tests/oracle/winograd_points.py). A number that is not finite makes all of its tile's
// outputs so.
//
// Sources: Lavin and Gray, "Fast Algorithms for Convolutional Neural Networks", 2015; points:
// Barabasz et al., "Error Analysis and Improving the Accuracy of Winograd Convolution for Deep
// Neural Networks", 2018.
#pragma once

#include <cstdint>

#include "kernels/cpu/lanes/arguments.h"
#include "kernels/cpu/lanes/tile.h"

namespace ringlet::lanes {

/// The points a and b at which the polynomials are evaluated, besides 0, -a, -b and infinity.
inline constexpr float kPointA = 0.75F, kPointB = 1.5F;
inline constexpr float kA2 = kPointA * kPointA, kB2 = kPointB * kPointB;
inline constexpr float kA3 = kA2 * kPointA, kB3 = kB2 * kPointB;

/// Six inputs to six points: B^T d.
struct InputPoints {
  static constexpr int kFrom = 6, kTo = 6;
  template <class V>
  [[gnu::always_inline]] static void apply(const V (&d)[6], V (&t)[6]) {
    t[0] = kA2 * kB2 * d[0] - (kA2 + kB2) * d[2] + d[4];
    const V even_a = d[4] - kB2 * d[2], odd_a = d[3] - kB2 * d[1];
    t[1] = even_a + kPointA * odd_a;
    t[2] = even_a - kPointA * odd_a;
    const V even_b = d[4] - kA2 * d[2], odd_b = d[3] - kA2 * d[1];
    t[3] = even_b + kPointB * odd_b;
    t[4] = even_b - kPointB * odd_b;
    t[5] = kA2 * kB2 * d[1] - (kA2 + kB2) * d[3] + d[5];
  }
};

/// Six points to four outputs: A^T m.
struct Outputs {
  static constexpr int kFrom = 6, kTo = 4;
  template <class V>
  [[gnu::always_inline]] static void apply(const V (&m)[6], V (&y)[4]) {
    const V even_a = m[1] + m[2], odd_a = m[1] - m[2];
    const V even_b = m[3] + m[4], odd_b = m[3] - m[4];
    y[0] = m[0] + even_a + even_b;
    y[1] = kPointA * odd_a + kPointB * odd_b;
    y[2] = kA2 * even_a + kB2 * even_b;
    y[3] = kA3 * odd_a + (kB3 * odd_b + m[5]);
  }
};

/// Four gradients of outputs to six points: A dy.
struct GradientPoints {
  static constexpr int kFrom = 4, kTo = 6;
  template <class V>
  [[gnu::always_inline]] static void apply(const V (&y)[4], V (&t)[6]) {
    t[0] = y[0];
    const V even_a = y[0] + kA2 * y[2], odd_a = kPointA * y[1] + kA3 * y[3];
    t[1] = even_a + odd_a;
    t[2] = even_a - odd_a;
    const V even_b = y[0] + kB2 * y[2], odd_b = kPointB * y[1] + kB3 * y[3];
    t[3] = even_b + odd_b;
    t[4] = even_b - odd_b;
    t[5] = y[3];
  }
};

// What a point's value is divided by: the product of its differences to the others.
inline constexpr float kAt0 = 1 / (kA2 * kB2);
inline constexpr float kAtA = 1 / (2 * kA2 * (kA2 - kB2)), kAtB = 1 / (2 * kB2 * (kB2 - kA2));

/// Three weights to six points: G w.
struct FilterPoints {
  static constexpr int kFrom = 3, kTo = 6;
  template <class V>
  [[gnu::always_inline]] static void apply(const V (&w)[3], V (&t)[6]) {
    t[0] = kAt0 * w[0];
    const V even_a = kAtA * w[0] + kAtA * kA2 * w[2], odd_a = kAtA * kPointA * w[1];
    t[1] = even_a + odd_a;
    t[2] = even_a - odd_a;
    const V even_b = kAtB * w[0] + kAtB * kB2 * w[2], odd_b = kAtB * kPointB * w[1];
    t[3] = even_b + odd_b;
    t[4] = even_b - odd_b;
    t[5] = w[2];
  }
};

/// Six points to three gradients of weights: G^T m.
struct FilterGradients {
  static constexpr int kFrom = 6, kTo = 3;
  template <class V>
  [[gnu::always_inline]] static void apply(const V (&m)[6], V (&w)[3]) {
    const V even_a = kAtA * (m[1] + m[2]), odd_a = kAtA * (m[1] - m[2]);
    const V even_b = kAtB * (m[3] + m[4]), odd_b = kAtB * (m[3] - m[4]);
    w[0] = kAt0 * m[0] + even_a + even_b;
    w[1] = kPointA * odd_a + kPointB * odd_b;
    w[2] = kA2 * even_a + kB2 * even_b + m[5];
  }
};

/// put(i, j, value) for the tile's transform, of what get(i, j) gives.
template <class S, class Transform, class Get, class Put>
[[gnu::always_inline]] inline void transform_tile(const Get& get, const Put& put) {
  using Vector = typename S::Vector;
  constexpr int kFrom = Transform::kFrom, kTo = Transform::kTo;
  Vector half[kTo][kFrom];
  unroll<kFrom>([&](auto j) __attribute__((always_inline)) {
    Vector from[kFrom], to[kTo];
    unroll<kFrom>([&](auto i) __attribute__((always_inline)) { from[i] = get(i, j); });
    Transform::apply(from, to);
    unroll<kTo>([&](auto i) __attribute__((always_inline)) { half[i][j] = to[i]; });
  });
  unroll<kTo>([&](auto i) __attribute__((always_inline)) {
    Vector to[kTo];
    Transform::apply(half[i], to);
    unroll<kTo>([&](auto j) __attribute__((always_inline)) { put(i, j, to[j]); });
  });
}

/// The part of the tile that exists, with zeros around: patch[extent][extent][16].
template <class S, int kExtent>
[[gnu::always_inline]] inline void copy_patch(const WinogradTile& a, const float* image,
                                              float* patch) {
  for (std::int64_t i = 0; i < a.height; ++i) {
    float* const to = patch + ((a.top + i) * kExtent + a.left) * 16;
    for (std::int64_t k = 0; k < a.width * 16; k += S::kWidth) {
      store<S>(to + k, load<S>(image + i * a.image_row + k));
    }
  }
}

/// A tile of an image to points[6 i + j][channel][16].
template <class S, class Transform>
void image_to_points(const WinogradTile& arguments) {
  const WinogradTile a = arguments;
  constexpr int kExtent = Transform::kFrom;
  float patch[kExtent * kExtent * 16];
  const bool whole = a.height == kExtent && a.width == kExtent;
  if (!whole) {
    for (float& value : patch) value = 0;
  }
  const std::int64_t row = whole ? a.image_row : kExtent * 16;
  for (std::int64_t c = 0; c < a.channels; ++c) {
    const float* const image = a.from + c * a.image_channel;
    if (!whole) copy_patch<S, kExtent>(a, image, patch);
    const float* const from = whole ? image : patch;
    for (int lane = 0; lane < 16; lane += S::kWidth) {
      float* const to = a.to + c * 16 + lane;
      transform_tile<S, Transform>(
          [&](auto i, auto j)
              __attribute__((always_inline)) { return load<S>(from + i * row + j * 16 + lane); },
          [&](auto i, auto j, auto value)
              __attribute__((always_inline)) { store<S>(to + (i * 6 + j) * a.point, value); });
    }
  }
}

/// image = act(bias + beta * image + patch), where the tile exists.
template <class S>
[[gnu::always_inline]] inline void finish_patch(const WinogradTile& a, const float* patch,
                                                float bias, float* image) {
  for (std::int64_t i = 0; i < a.height; ++i) {
    for (std::int64_t k = 0; k < a.width * 16; k += S::kWidth) {
      float* const y = image + i * a.image_row + k;
      typename S::Vector value = load<S>(patch + i * 64 + k) + broadcast<S>(bias);
      if (a.beta != 0) value += a.beta * load<S>(y);
      store<S>(y, a.relu ? S::relu(value) : value);
    }
  }
}

/// Sums of products at points[6 i + j][channel][16] to a tile of outputs.
template <class S>
void points_to_output(const WinogradTile& arguments) {
  const WinogradTile a = arguments;
  float patch[4 * 4 * 16];
  for (std::int64_t c = 0; c < a.channels; ++c) {
    for (int lane = 0; lane < 16; lane += S::kWidth) {
      const float* const from = a.from + c * 16 + lane;
      transform_tile<S, Outputs>(
          [&](auto i, auto j)
              __attribute__((always_inline)) { return load<S>(from + (i * 6 + j) * a.point); },
          [&](auto i, auto j, auto value)
              __attribute__((always_inline)) { store<S>(patch + (i * 4 + j) * 16 + lane, value); });
    }
    finish_patch<S>(a, patch, a.bias == nullptr ? 0.0F : a.bias[c], a.to + c * a.image_channel);
  }
}

/// Filters to points[6 i + j][filter].
template <class S>
void filters_to_points(const WinogradFilters& arguments) {
  const WinogradFilters a = arguments;
  for (std::int64_t first = 0; first < a.count; first += S::kWidth) {
    const int filters = static_cast<int>(a.count - first < S::kWidth ? a.count - first : S::kWidth);
    float weights[9][S::kWidth] = {};
    for (int f = 0; f < filters; ++f) {
      const float* const w = a.from + (first + f) * a.filter;
      for (int k = 0; k < 9; ++k) weights[k][f] = w[a.turned ? 8 - k : k];
    }
    float* const to = a.to + first;
    transform_tile<S, FilterPoints>(
        [&](auto i, auto j) __attribute__((always_inline)) { return load<S>(weights[3 * i + j]); },
        [&](auto i, auto j, auto value) __attribute__((always_inline)) {
          float* const point = to + (i * 6 + j) * a.point;
          if (filters == S::kWidth) {
            store<S>(point, value);
          } else {
            for (int f = 0; f < filters; ++f) point[f] = value[f];
          }
        });
  }
}

/// Gradients at points[6 i + j][filter] to those of the filters.
template <class S>
void points_to_filters(const WinogradFilters& arguments) {
  const WinogradFilters a = arguments;
  for (std::int64_t first = 0; first < a.count; first += S::kWidth) {
    const int filters = static_cast<int>(a.count - first < S::kWidth ? a.count - first : S::kWidth);
    float gradients[9][S::kWidth];
    const float* const from = a.from + first;
    transform_tile<S, FilterGradients>(
        [&](auto i, auto j)
            __attribute__((always_inline)) { return load<S>(from + (i * 6 + j) * a.point); },
        [&](auto i, auto j, auto value)
            __attribute__((always_inline)) { store<S>(gradients[3 * i + j], value); });
    for (int f = 0; f < filters; ++f) {
      float* const w = a.to + (first + f) * a.filter;
      for (int k = 0; k < 9; ++k) {
        w[k] = a.beta == 0 ? gradients[k][f] : a.beta * w[k] + gradients[k][f];
      }
    }
  }
}

}  // namespace ringlet::lanes
