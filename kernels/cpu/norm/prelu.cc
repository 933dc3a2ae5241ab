// The loops of prelu_table.h, as templates over an instruction set. The compiler makes no vectors
// of plain ones: it keeps the product for numbers below zero, and branches on each.
#include "kernels/cpu/norm/prelu_table.h"
#include "kernels/cpu/norm/sums.h"
#include RINGLET_SIMD_HEADER

namespace ringlet::impl {

using simd::load;
using simd::store;

/// `above` where v > 0, else `below`: also where v is NaN.
template <class S, class V>
[[gnu::always_inline]] inline V by_sign(V v, V above, V below) {
  return v > V{} ? above : below;
}

template <class S>
void prelu_forward(const float* x, std::int64_t n, float slope, float* y) {
  using V = typename S::Vector;
  for_all<S>(
      n,
      [&](std::int64_t i, int) __attribute__((always_inline)) {
        const V v = load<S>(x + i);
        store<S>(y + i, by_sign<S, V>(v, v, v * slope));
      },
      [&](std::int64_t i) { y[i] = by_sign<S, float>(x[i], x[i], x[i] * slope); });
}

enum class Writes { nothing, dx, sum_with_dx };

template <class S, Writes kWrites>
double prelu_part(const float* x, const float* dy, std::int64_t n, float slope, float beta,
                  float* dx) {
  using V = typename S::Vector;
  Sums<S> sum;
  for_all<S>(
      n,
      [&](std::int64_t i, int turn) __attribute__((always_inline)) {
        const V v = load<S>(x + i), d = load<S>(dy + i);
        sum.vectors[turn] += by_sign<S, V>(v, V{}, d * v);
        if constexpr (kWrites == Writes::nothing) return;
        V gradient = by_sign<S, V>(v, d, d * slope);
        if constexpr (kWrites == Writes::sum_with_dx) gradient += load<S>(dx + i) * beta;
        store<S>(dx + i, gradient);
      },
      [&](std::int64_t i) {
        const float v = x[i], d = dy[i];
        sum.rest += by_sign<S, float>(v, 0.0F, d * v);
        if constexpr (kWrites == Writes::nothing) return;
        float gradient = by_sign<S, float>(v, d, d * slope);
        if constexpr (kWrites == Writes::sum_with_dx) gradient += dx[i] * beta;
        dx[i] = gradient;
      });
  return sum.total();
}

template <class S>
double prelu_backward(const float* x, const float* dy, std::int64_t n, float slope, float beta,
                      float* dx) {
  const auto part = dx == nullptr ? prelu_part<S, Writes::nothing>
                    : beta == 0   ? prelu_part<S, Writes::dx>
                                  : prelu_part<S, Writes::sum_with_dx>;
  double sum = 0;
  for (std::int64_t at = 0; at < n; at += kNormPart) {
    const std::int64_t count = n - at < kNormPart ? n - at : kNormPart;
    sum += part(x + at, dy + at, count, slope, beta, dx == nullptr ? dx : dx + at);
  }
  return sum;
}

PReluLoops prelu_loops_of(RINGLET_SET) {
  return {prelu_forward<RINGLET_SIMD>, prelu_backward<RINGLET_SIMD>};
}

}  // namespace ringlet::impl
