#include "app/compare/ratio.h"

#include <algorithm>
#include <cmath>
#include <vector>

#include "app/sweep/student_t.h"

namespace ringlet::app::compare {

namespace {

constexpr double kConfidence = 0.95;

/// How far the ends are from the figure, on logarithms. Rounds need not agree with the figure of
/// all calls: an end on its other side is no distance.
double down(const Figure& figure) {
  return std::max(0.0, std::log(figure.value) - std::log(figure.low));
}
double up(const Figure& figure) {
  return std::max(0.0, std::log(figure.high) - std::log(figure.value));
}

}  // namespace

Figure figure_of(double value, std::span<const double> parts) {
  std::vector<double> logarithms;
  for (const double part : parts) {
    if (!(part > 0)) return {value};
    logarithms.push_back(std::log(part));
  }
  if (logarithms.size() < 2) return {value};
  const sweep::Spread spread = sweep::spread_of(logarithms);
  const auto count = static_cast<double>(spread.count);
  const double t = sweep::student_t_quantile((1 + kConfidence) / 2, count - 1);
  const double factor = std::exp(t * spread.deviation / std::sqrt(count));
  return {value, value / factor, value * factor};
}

Figure time_of(const Figure& rate) {
  if (!rate.has_interval()) return {1 / rate.value};
  return {1 / rate.value, 1 / rate.high, 1 / rate.low};
}

Figure ratio_of(const Figure& a, const Figure& b) {
  const double ratio = b.value / a.value;
  if (!a.has_interval() || !b.has_interval()) return {ratio};
  return {ratio, ratio * std::exp(-std::hypot(down(b), up(a))),
          ratio * std::exp(std::hypot(up(b), down(a)))};
}

Verdict verdict_of(const Figure& ratio) {
  const double low = ratio.has_interval() ? ratio.low : ratio.value;
  const double high = ratio.has_interval() ? ratio.high : ratio.value;
  return low > 1 ? Verdict::worse : high < 1 ? Verdict::better : Verdict::equal;
}

bool is_worse_than(const Figure& ratio, double limit) {
  return (ratio.has_interval() ? ratio.low : ratio.value) > limit;
}

}  // namespace ringlet::app::compare
