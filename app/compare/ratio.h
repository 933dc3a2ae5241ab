// How much slower one measurement is than another: the ratio of their times, and where it lies.
//
// Each figure has an interval of its own, of 95 % or more. On logarithms a ratio is a difference,
// and the distances of two figures from the ends of their intervals add as squares (MOVER: Zou and
// Donner, "Construction of confidence limits about effect measures", Statistics in Medicine 27,
// 2008):
//
//   ln ratio = ln b - ln a
//   ln low   = ln ratio - sqrt((ln b - ln b.low)^2  + (ln a.high - ln a)^2)
//   ln high  = ln ratio + sqrt((ln b.high - ln b)^2 + (ln a - ln a.low)^2)
//
// So the interval of the ratio has as much, where neither measurement knew of the other. The ends
// b.low / a.high and b.high / a.low would have far more, of two of 95 % more than 99: both figures
// would have to be off by all of their intervals at once. They call equal what is not.
//
// It holds for a row by itself. Of a hundred rows that are equal, some five come out better or
// worse by chance where the figures' intervals have 95 %, and some one where they have 98.8, as
// those of the 11 rounds of `bench all-reduce` (judgement.h).
#pragma once

#include <cstdint>
#include <span>

namespace ringlet::app::compare {

/// A time, or a rate; above 0.
struct Figure {
  double value = 0;
  double low = 0, high = 0;  ///< of 95 % or more; both 0: it was measured once, and has none
  bool has_interval() const { return low > 0; }
};

/// A figure that was measured several times. Its interval is the figure divided and multiplied by
/// exp(t s / sqrt(n)), with the deviation s of the logarithms of the n `parts` and Student's t of
/// n - 1 degrees. None where there are fewer than two parts, or one is not above 0.
Figure figure_of(double value, std::span<const double> parts);

/// 1 / rate: the time of one.
Figure time_of(const Figure& rate);

/// Of b's time to a's: above 1 b is slower. Without an interval where one of them has none.
Figure ratio_of(const Figure& a, const Figure& b);

enum class Verdict : std::uint8_t { better, worse, equal };

/// Equal where the interval of the ratio holds 1; where there is none, where the ratio is 1.
Verdict verdict_of(const Figure& ratio);

/// Whether b is slower by more than `limit`, its whole interval included; where there is none, the
/// ratio itself.
bool is_worse_than(const Figure& ratio, double limit);

}  // namespace ringlet::app::compare
