// The loops of kernels/margin_softmax.h, as templates over an instruction set (cpu/simd). What is
// left of a row behind its last whole vector goes through the same functions, in a vector that is
// filled up: so a class has the same bits wherever it stands.
#include <cstddef>
#include <cstring>
#include <limits>

#include "kernels/cpu/margin/table.h"
#include RINGLET_SIMD_HEADER

namespace ringlet::impl {

namespace {

using simd::broadcast;

constexpr float kBelowAll = -std::numeric_limits<float>::infinity();

/// e^x of x <= 0: 2^n e^r with n whole and |r| <= ln 2 / 2, by the series of e^r up to r^7 / 7!,
/// which is within 1e-8. Below e^-87 it is 0; a NaN stays.
template <class S>
[[gnu::always_inline]] inline typename S::Vector exponential(typename S::Vector x) {
  using Vector = typename S::Vector;
  using Integers = typename S::Integers;
  constexpr float kLeast = -87.0F, kMagic = 12582912.0F;  // 1.5 * 2^23: adding it rounds
  const Vector at_least = x < kLeast ? broadcast<S>(kLeast) : x;
  const Vector shifted = at_least * 1.44269504F + kMagic;
  const Vector n = shifted - kMagic;
  const Vector r = (at_least - n * 0.693359375F) - n * -2.12194440e-4F;
  Vector sum = r * (1.0F / 5040) + 1.0F / 720;
  sum = sum * r + 1.0F / 120;
  sum = sum * r + 1.0F / 24;
  sum = sum * r + 1.0F / 6;
  sum = sum * r + 0.5F;
  sum = sum * r + 1.0F;
  sum = sum * r + 1.0F;
  const Integers exponent = reinterpret_cast<Integers>(shifted) << 23;  // the magic's bits fall out
  const auto scaled = reinterpret_cast<Vector>(reinterpret_cast<Integers>(sum) + exponent);
  const Vector or_zero = x < kLeast ? Vector{} : scaled;
  return x == x ? or_zero : x;
}

template <class S>
[[gnu::always_inline]] inline typename S::Vector cosines(const MarginRow& row,
                                                         typename S::Vector products,
                                                         typename S::Vector w_inverse) {
  using Vector = typename S::Vector;
  const Vector c = products * (w_inverse * row.x_inverse);
  const Vector from_below = c < -1.0F ? broadcast<S>(-1.0F) : c;
  return from_below > 1.0F ? broadcast<S>(1.0F) : from_below;
}

/// Below all others where there is no class, which an inverse norm below 0 says.
template <class S>
[[gnu::always_inline]] inline typename S::Vector logits(const MarginRow& row, typename S::Vector c,
                                                        typename S::Vector w_inverse) {
  using Vector = typename S::Vector;
  const Vector scaled = c * row.others.scale;
  const Vector kept = row.others.filter > 0 ? (c > row.others.filter ? Vector{} : scaled) : scaled;
  return w_inverse < 0.0F ? broadcast<S>(kBelowAll) : kept;
}

/// Calls f(products, inverse norms, at, how many count) on [begin, end), a vector at a time. Of the
/// last one the numbers beyond the end are zeros.
template <class S, class F>
[[gnu::always_inline]] inline void for_each_vector(const float* products, const float* w_inverse,
                                                   std::int64_t begin, std::int64_t end, F f) {
  constexpr int kWidth = S::kWidth;
  std::int64_t at = begin;
  for (; at + kWidth <= end; at += kWidth) {
    f(simd::load<S>(products + at), simd::load<S>(w_inverse + at), at, kWidth);
  }
  if (at >= end) return;
  float few[2][kWidth] = {};
  const auto left = static_cast<std::size_t>(end - at);
  std::memcpy(few[0], products + at, left * sizeof(float));
  std::memcpy(few[1], w_inverse + at, left * sizeof(float));
  f(simd::load<S>(few[0]), simd::load<S>(few[1]), at, static_cast<int>(left));
}

/// The classes before the target and those behind it.
template <class S, class F>
[[gnu::always_inline]] inline void for_each_other(const MarginRow& row, const float* products,
                                                  F f) {
  const bool here = 0 <= row.target && row.target < row.classes;
  const std::int64_t split = here ? row.target : row.classes;
  for_each_vector<S>(products, row.w_inverse, 0, split, f);
  for_each_vector<S>(products, row.w_inverse, split + 1, row.classes, f);
}

template <class S>
double dot(const float* a, const float* b, std::int64_t n) {
  constexpr int kSums = 16;
  double sums[kSums] = {};
  std::int64_t i = 0;
  for (; i + kSums <= n; i += kSums) {
    for (int k = 0; k < kSums; ++k) {
      sums[k] += static_cast<double>(a[i + k]) * static_cast<double>(b[i + k]);
    }
  }
  for (int k = 0; i < n; ++i, ++k) {
    sums[k] += static_cast<double>(a[i]) * static_cast<double>(b[i]);
  }
  for (int half = kSums / 2; half > 0; half /= 2) {
    for (int k = 0; k < half; ++k) sums[k] += sums[k + half];
  }
  return sums[0];
}

template <class S>
margin::Part part(const MarginRow& row, const float* products) {
  using Vector = typename S::Vector;
  const bool here = 0 <= row.target && row.target < row.classes;
  const float of_target = here ? row.of_target.logit : kBelowAll;
  float nearest = kBelowAll;
  Vector most = broadcast<S>(kBelowAll);
  for_each_other<S>(row, products, [&](Vector p, Vector w, std::int64_t, int count) {
    const Vector z = logits<S>(row, cosines<S>(row, p, w), w);
    if (count == S::kWidth) {
      most = most < z ? z : most;
    } else {
      for (int i = 0; i < count; ++i) nearest = nearest < z[i] ? z[i] : nearest;
    }
  });
  for (int i = 0; i < S::kWidth; ++i) nearest = nearest < most[i] ? most[i] : nearest;
  const float largest = nearest < of_target ? of_target : nearest;
  // A block has a few thousand classes, whose exponentials a lane adds up in f32.
  Vector sums{};
  double sum = 0;
  for_each_other<S>(row, products, [&](Vector p, Vector w, std::int64_t, int count) {
    const Vector of_class = exponential<S>(logits<S>(row, cosines<S>(row, p, w), w) - largest);
    const Vector e = w < 0.0F ? Vector{} : of_class;  // where no class is, the largest may be too
    if (count == S::kWidth) {
      sums += e;
    } else {
      for (int i = 0; i < count; ++i) sum += static_cast<double>(e[i]);
    }
  });
  for (int i = 0; i < S::kWidth; ++i) sum += static_cast<double>(sums[i]);
  if (here) sum += std::exp(static_cast<double>(of_target) - static_cast<double>(largest));
  return {nearest, static_cast<float>(sum), of_target};
}

template <class S>
void gradient(const MarginRow& row, float largest, float sum, float dloss, float* products) {
  using Vector = typename S::Vector;
  const float factor = dloss * row.others.scale / sum;
  for_each_other<S>(row, products, [&](Vector p, Vector w, std::int64_t at, int count) {
    const Vector c = cosines<S>(row, p, w);
    Vector g = exponential<S>(logits<S>(row, c, w) - largest) * factor;
    if (row.others.filter > 0) g = c > row.others.filter ? Vector{} : g;
    g = w < 0.0F ? Vector{} : g * (w * row.x_inverse);
    if (count == S::kWidth) return simd::store<S>(products + at, g);
    for (int i = 0; i < count; ++i) products[at + i] = g[i];
  });
  if (row.target < 0 || row.target >= row.classes) return;
  const float p = std::exp(row.of_target.logit - largest) / sum;
  products[row.target] =
      dloss * row.of_target.slope * (p - 1) * (row.w_inverse[row.target] * row.x_inverse);
}

template <class S>
void project(const float* x, double inverse, double dot, float* g, std::int64_t n) {
  // What margin::projected() says, which is no template over the set.
  const double factor = inverse * inverse * dot;
  for (std::int64_t i = 0; i < n; ++i) {
    const double along = static_cast<double>(x[i]) * factor;
    g[i] = inverse <= 0 ? 0.0F : static_cast<float>(static_cast<double>(g[i]) - along);
  }
}

}  // namespace

MarginLoops margin_loops_of(RINGLET_SET) {
  return {dot<RINGLET_SIMD>, part<RINGLET_SIMD>, gradient<RINGLET_SIMD>, project<RINGLET_SIMD>};
}

}  // namespace ringlet::impl
