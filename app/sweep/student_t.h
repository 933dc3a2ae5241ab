// Student's t distribution: how far two means of few numbers may be apart by chance.
#pragma once

#include <span>

namespace ringlet::app::sweep {

/// The t below which the part `share` of the distribution lies, 0.5 <= share < 1, with `degrees`
/// > 0 of freedom. Relative error below 1e-9. By the regularised incomplete beta function's
/// continued fraction (DLMF 8.17.22) and bisection.
double student_t_quantile(double share, double degrees);

struct Spread {
  std::size_t count = 0;
  double mean = 0;
  double deviation = 0;  ///< of the sample, by count - 1; 0 of one number
};

Spread spread_of(std::span<const double> values);

/// Where the difference of two means lies with this confidence.
struct Interval {
  double low, high;
  bool has_zero() const { return low <= 0 && high >= 0; }
};

/// Of a's mean less b's, by Welch's test, which lets their deviations differ. Each has two numbers
/// at least.
Interval difference_of(const Spread& a, const Spread& b, double confidence);

}  // namespace ringlet::app::sweep
