#include "app/sweep/student_t.h"

#include <algorithm>
#include <cmath>

#include "base/error.h"

namespace ringlet::app::sweep {

namespace {

/// The continued fraction of the incomplete beta function, by Lentz's method.
double beta_fraction(double a, double b, double x) {
  constexpr double kTiny = 1e-300, kEnough = 1e-15;
  constexpr int kMostTerms = 10'000;
  const auto away_from_zero = [](double value) { return std::abs(value) < kTiny ? kTiny : value; };
  double c = 1, d = 1 / away_from_zero(1 - (a + b) * x / (a + 1)), result = d;
  for (int m = 1; m < kMostTerms; ++m) {
    const double even = m * (b - m) * x / ((a + 2 * m - 1) * (a + 2 * m));
    const double odd = -(a + m) * (a + b + m) * x / ((a + 2 * m) * (a + 2 * m + 1));
    double change = 1;
    for (const double term : {even, odd}) {
      d = 1 / away_from_zero(1 + term * d);
      c = away_from_zero(1 + term / c);
      change = c * d;
      result *= change;
    }
    if (std::abs(change - 1) < kEnough) break;
  }
  return result;
}

/// The regularised incomplete beta function.
double beta(double a, double b, double x) {
  if (x <= 0 || x >= 1) return x <= 0 ? 0 : 1;
  // The fraction converges fast on this side; the other one is its mirror image.
  if (x > (a + 1) / (a + b + 2)) return 1 - beta(b, a, 1 - x);
  const double front = std::exp(std::lgamma(a + b) - std::lgamma(a) - std::lgamma(b) +
                                a * std::log(x) + b * std::log1p(-x));
  return front * beta_fraction(a, b, x) / a;
}

/// The part of the distribution beyond t >= 0.
double tail(double t, double degrees) {
  return beta(degrees / 2, 0.5, degrees / (degrees + t * t)) / 2;
}

}  // namespace

double student_t_quantile(double share, double degrees) {
  require(share >= 0.5 && share < 1 && degrees > 0, "student_t_quantile",
          "a share from 0.5 to 1 and degrees above 0 are needed");
  double low = 0, high = 1;
  while (tail(high, degrees) > 1 - share) high *= 2;
  constexpr double kEnough = 1e-12;
  while (high - low > kEnough * high) {
    const double middle = (low + high) / 2;
    (tail(middle, degrees) > 1 - share ? low : high) = middle;
  }
  return (low + high) / 2;
}

Spread spread_of(std::span<const double> values) {
  Spread spread{values.size(), 0, 0};
  if (values.empty()) return spread;
  for (const double value : values) spread.mean += value / static_cast<double>(values.size());
  double squares = 0;
  for (const double value : values) squares += (value - spread.mean) * (value - spread.mean);
  if (values.size() > 1) {
    spread.deviation = std::sqrt(squares / static_cast<double>(values.size() - 1));
  }
  return spread;
}

Interval difference_of(const Spread& a, const Spread& b, double confidence) {
  require(a.count > 1 && b.count > 1, "difference_of", "two numbers of each are needed");
  const double of_a = a.deviation * a.deviation / static_cast<double>(a.count);
  const double of_b = b.deviation * b.deviation / static_cast<double>(b.count);
  const double variance = of_a + of_b, difference = a.mean - b.mean;
  if (variance == 0) return {difference, difference};
  const double degrees = variance * variance /
                         (of_a * of_a / static_cast<double>(a.count - 1) +
                          of_b * of_b / static_cast<double>(b.count - 1));
  const double half = student_t_quantile((1 + confidence) / 2, degrees) * std::sqrt(variance);
  return {difference - half, difference + half};
}

}  // namespace ringlet::app::sweep
