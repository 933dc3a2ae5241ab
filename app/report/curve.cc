#include "app/report/curve.h"

#include <algorithm>
#include <cmath>

namespace ringlet::app::report {

namespace {

/// Calls f(begin, end) for at most `parts` ranges of nearly equal length, and leaves a curve that
/// is short enough as it is.
template <class F>
Curve in_parts(const Curve& curve, std::size_t parts, F f) {
  if (curve.size() <= parts) return curve;
  Curve result;
  for (std::size_t part = 0; part < parts; ++part) {
    f(curve.size() * part / parts, curve.size() * (part + 1) / parts, result);
  }
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

Curve outline(const Curve& curve, std::size_t points) {
  return in_parts(curve, points / 2, [&](std::size_t begin, std::size_t end, Curve& result) {
    std::size_t least = begin, largest = begin;
    for (std::size_t i = begin; i < end; ++i) {
      if (!(curve.y[i] >= curve.y[least])) least = i;
      if (!(curve.y[i] <= curve.y[largest])) largest = i;
    }
    const auto [first, second] = std::minmax(least, largest);
    result.add(curve.x[first], curve.y[first]);
    if (second != first) result.add(curve.x[second], curve.y[second]);
  });
}

}  // namespace ringlet::app::report
