// The arithmetic of kernels/margin_softmax.h, one number at a time, shared by the loops of every
// device. Sines are summed up from their series, so that a GPU needs no subroutine and no local
// memory for them, and has the host's bits.
#pragma once

#include <cmath>
#include <cstdint>

#include "base/host_device.h"
#include "kernels/margin_softmax.h"

namespace ringlet::margin {

inline constexpr double kPi = 3.14159265358979323846;
inline constexpr double kShortest = 1e-12;  // of a row that has a direction
inline constexpr double kSmallestSine = 1e-6;

/// x within a turn, as near to 0 as can be.
RINGLET_HOST_DEVICE inline double within_a_turn(double x) {
  RINGLET_ROLLED
  while (x > kPi) x -= 2 * kPi;
  RINGLET_ROLLED
  while (x < -kPi) x += 2 * kPi;
  return x;
}

/// The series of a cosine (first = 1) or of a sine (first = x): terms fall by x^2 / (k (k + 1)).
RINGLET_HOST_DEVICE inline double alternating(double x, double first, double k) {
  const double square = x * x;
  double term = first, sum = first;
  RINGLET_ROLLED
  for (int turn = 0; turn < 16; ++turn, k += 2) {
    term *= -square / (k * (k + 1));
    sum += term;
  }
  return sum;
}

RINGLET_HOST_DEVICE inline double cosine(double x) { return alternating(within_a_turn(x), 1, 1); }
RINGLET_HOST_DEVICE inline double sine(double x) {
  x = within_a_turn(x);
  return alternating(x, x, 2);
}

/// arcsin x of |x| <= 1/2.
RINGLET_HOST_DEVICE inline double small_arc_sine(double x) {
  const double square = x * x;
  double term = x, sum = x;
  RINGLET_ROLLED
  for (double k = 1; k < 46; k += 2) {
    term *= square * (k * k) / ((k + 1) * (k + 2));
    sum += term;
  }
  return sum;
}

RINGLET_HOST_DEVICE inline double arc_cosine(double c) {
  if (c > 0.5) return 2 * small_arc_sine(std::sqrt((1 - c) / 2));
  if (c < -0.5) return kPi - 2 * small_arc_sine(std::sqrt((1 + c) / 2));
  return kPi / 2 - small_arc_sine(c);
}

/// The margins of a step: those of `spec`, or on the way there.
struct Margins {
  double m1, m2, m3;
};
/// `epochs` may be null: warm-up is over.
RINGLET_HOST_DEVICE inline Margins margins_at(const MarginSpec& spec, const float* epochs) {
  double share = 1;
  if (epochs != nullptr && spec.warmup_epochs > 0) {
    const double done = static_cast<double>(*epochs) / spec.warmup_epochs;
    share = done < 0 ? 0 : done < 1 ? done : 1;
  }
  return {1 + (spec.m1 - 1) * share, spec.m2 * share, spec.m3 * share};
}

/// psi(c) and its slope.
struct Psi {
  double value, slope;
};

/// What lies between [-1, 1] and c is rounding: it changes the value, never a gradient. A NaN
/// stays.
template <class T>
RINGLET_HOST_DEVICE constexpr T clamped(T c) {
  return c < T{-1} ? T{-1} : c > T{1} ? T{1} : c;
}

RINGLET_HOST_DEVICE inline Psi psi(const MarginSpec& spec, const Margins& m, double c) {
  c = clamped(c);
  const double sine_of_c = std::sqrt((1 - c) * (1 + c));
  const double divisor = sine_of_c > kSmallestSine ? sine_of_c : kSmallestSine;
  const double end = (kPi - m.m2) / m.m1;  // theta0
  Psi result{};
  if (spec.guard != MarginGuard::none && end < kPi && c <= cosine(end)) {
    result.slope = 1;
    result.value =
        spec.guard == MarginGuard::hard ? c - m.m2 * sine(m.m2) - m.m3 : c - 1 - cosine(end) - m.m3;
  } else if (m.m1 == 1) {  // no arc cosine
    const double cosine_of_m = cosine(m.m2), sine_of_m = sine(m.m2);
    result.value = c * cosine_of_m - sine_of_c * sine_of_m - m.m3;
    result.slope = cosine_of_m + c * sine_of_m / divisor;
  } else {
    const double angle = m.m1 * arc_cosine(c) + m.m2;
    result.value = cosine(angle) - m.m3;
    result.slope = m.m1 * sine(angle) / divisor;
  }
  if (spec.straight) result.slope = 1;
  return result;
}

/// z_y and scale dpsi/dc, from the cosine, and that from sums over the rows of x and of w: a row
/// without a direction has a cosine of 0.
struct Target {
  float logit, slope;
};
RINGLET_HOST_DEVICE inline double cosine_of(double xx, double ww, double xw) {
  const bool directed = !(xx < kShortest * kShortest) && !(ww < kShortest * kShortest);
  return directed ? xw / (std::sqrt(xx) * std::sqrt(ww)) : 0;
}
RINGLET_HOST_DEVICE inline Target target_of(const MarginSpec& spec, const Margins& m, double c) {
  const Psi found = psi(spec, m, c);
  return {static_cast<float>(spec.scale * found.value),
          static_cast<float>(spec.scale * found.slope)};
}

/// 1 / |row| from the sum of its squares.
RINGLET_HOST_DEVICE inline float inverse_norm(double squares) {
  return squares < kShortest * kShortest ? 0.0F : static_cast<float>(1 / std::sqrt(squares));
}

/// g less its part along x: `dot` is x . g, and `inverse` 1 / |x|, or 0 of no direction, or below
/// 0 of a row that there is not.
RINGLET_HOST_DEVICE inline float projected(float x, double inverse, double dot, float g) {
  if (inverse <= 0) return 0.0F;
  return static_cast<float>(static_cast<double>(g) -
                            static_cast<double>(x) * (inverse * inverse * dot));
}

/// What a product's cosine is to the loss, of a class that is not the sample's. The filter in f32.
struct Others {
  float scale, filter;
  RINGLET_HOST_DEVICE bool filters(float c) const { return filter > 0 && c > filter; }
  RINGLET_HOST_DEVICE float logit(float c) const { return filters(c) ? 0.0F : scale * c; }
};
inline Others others_of(const MarginSpec& spec) {
  return {static_cast<float>(spec.scale), static_cast<float>(spec.filter)};
}

/// arccos c of |c| <= 1 within 2e-8: Abramowitz and Stegun, 4.4.46.
RINGLET_HOST_DEVICE inline double angle_of(double c) {
  const double x = c < 0 ? -c : c;
  double sum = -0.0012624911;
  sum = sum * x + 0.0066700901;
  sum = sum * x - 0.0170881256;
  sum = sum * x + 0.0308918810;
  sum = sum * x - 0.0501743046;
  sum = sum * x + 0.0889789874;
  sum = sum * x - 0.2145988016;
  sum = sum * x + 1.5707963050;
  const double angle = std::sqrt(1 - x) * sum;
  return c < 0 ? kPi - angle : angle;
}

/// m, l and t of margin_softmax.h, of two parts together. Neither has a NaN in its maximum.
struct Part {
  float largest, sum, of_label;
  /// Of all logits, the label's too: that below which the exponentials are.
  RINGLET_HOST_DEVICE float reference() const { return largest < of_label ? of_label : largest; }
};
RINGLET_HOST_DEVICE inline Part joined(const Part& a, const Part& b) {
  const float of_a = a.reference(), of_b = b.reference();
  const float reference = of_a < of_b ? of_b : of_a;
  double sum = 0;
  if (a.sum != 0) {
    sum += static_cast<double>(a.sum) * static_cast<double>(std::exp(of_a - reference));
  }
  if (b.sum != 0) {
    sum += static_cast<double>(b.sum) * static_cast<double>(std::exp(of_b - reference));
  }
  return {a.largest < b.largest ? b.largest : a.largest, static_cast<float>(sum),
          a.of_label < b.of_label ? b.of_label : a.of_label};
}

}  // namespace ringlet::margin
