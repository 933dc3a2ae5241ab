#include "app/report/curve.h"

#include <algorithm>
#include <cmath>

namespace ringlet::app::report {

namespace {

/// Calls f(begin, end) for at most `parts` ranges of nearly equal length.
template <class F>
void for_each_part(std::size_t size, std::size_t parts, F f) {
  parts = std::min(size, parts);
  for (std::size_t part = 0; part < parts; ++part) {
    f(size * part / parts, size * (part + 1) / parts);
  }
}

/// The same with the curve to add to, and leaves a curve that is short enough as it is.
template <class F>
Curve in_parts(const Curve& curve, std::size_t parts, F f) {
  if (curve.size() <= parts) return curve;
  Curve result;
  for_each_part(curve.size(), parts,
                [&](std::size_t begin, std::size_t end) { f(begin, end, result); });
  return result;
}

}  // namespace

Curve smoothed(const Curve& curve, double window) {
  const double keep = 1 - 1 / std::max(1.0, window);
  Curve result = curve;
  double sum = 0, weight = 0;
  for (double& y : result.y) {
    if (!std::isfinite(y)) continue;
    sum = keep * sum + y;
    weight = keep * weight + 1;
    y = sum / weight;
  }
  return result;
}

Curve thinned(const Curve& curve, std::size_t points) {
  return in_parts(curve, points, [&](std::size_t begin, std::size_t end, Curve& result) {
    double x = 0, y = 0, count = 0;
    for (std::size_t i = begin; i < end; ++i) {
      if (!std::isfinite(curve.y[i])) continue;
      x += curve.x[i];
      y += curve.y[i];
      ++count;
    }
    if (count == 0) {
      result.add(curve.x[begin], curve.y[begin]);
    } else {
      result.add(x / count, y / count);
    }
  });
}

Curve rolling_quantile(const Curve& curve, std::size_t points, double window, double share) {
  constexpr double kLeast = 10;  // of fewer points a quantile says little
  const auto back = static_cast<std::size_t>(std::max(kLeast, window));
  Curve result = thinned(curve, points);
  std::size_t part = 0;
  for_each_part(curve.size(), points, [&](std::size_t, std::size_t end) {
    std::vector<double> values;
    for (std::size_t i = end - std::min(end, back); i < end; ++i) {
      if (std::isfinite(curve.y[i])) values.push_back(curve.y[i]);
    }
    const auto rank = static_cast<std::ptrdiff_t>(
        std::lround(share * std::max(0.0, static_cast<double>(values.size()) - 1)));
    if (!values.empty()) std::nth_element(values.begin(), values.begin() + rank, values.end());
    result.y[part++] = values.empty() ? NAN : values[static_cast<std::size_t>(rank)];
  });
  return result;
}

Curve outline(const Curve& curve, std::size_t points) {
  return in_parts(curve, points / 2, [&](std::size_t begin, std::size_t end, Curve& result) {
    std::size_t least = begin, largest = begin;
    for (std::size_t i = begin; i < end; ++i) {
      if (!std::isfinite(curve.y[i])) continue;
      if (!(curve.y[i] >= curve.y[least])) least = i;
      if (!(curve.y[i] <= curve.y[largest])) largest = i;
    }
    const auto [first, second] = std::minmax(least, largest);
    result.add(curve.x[first], curve.y[first]);
    if (second != first) result.add(curve.x[second], curve.y[second]);
  });
}

}  // namespace ringlet::app::report
