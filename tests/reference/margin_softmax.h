// The loss of kernels/margin_softmax.h, said as plainly as possible, in double: unit vectors, an
// arc cosine and a cosine for each sample's own class, and the gradients by the chain rule.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <numbers>
#include <vector>

#include "kernels/margin_softmax.h"

namespace ringlet::test::reference {

using Rows = std::vector<std::vector<double>>;

inline double dot(const std::vector<double>& a, const std::vector<double>& b) {
  double sum = 0;
  for (std::size_t i = 0; i < a.size(); ++i) sum += a[i] * b[i];
  return sum;
}

/// a / |a|; zeros where it is shorter than 1e-12.
inline std::vector<double> unit(std::vector<double> a) {
  const double norm = std::sqrt(dot(a, a));
  for (double& value : a) value = norm < 1e-12 ? 0 : value / norm;
  return a;
}

/// What `of_unit`, the gradient of a / |a|, says of a.
inline std::vector<double> through_norm(const std::vector<double>& a,
                                        const std::vector<double>& of_unit) {
  const double norm = std::sqrt(dot(a, a));
  std::vector<double> gradient(a.size(), 0);
  if (norm < 1e-12) return gradient;
  const std::vector<double> direction = unit(a);
  const double along = dot(direction, of_unit);
  for (std::size_t i = 0; i < a.size(); ++i) {
    gradient[i] = (of_unit[i] - direction[i] * along) / norm;
  }
  return gradient;
}

struct MarginValue {
  double value, slope;
};

inline MarginValue margin_value(const MarginSpec& spec, double c) {
  c = std::clamp(c, -1.0, 1.0);
  const double theta = std::acos(c), end = (std::numbers::pi - spec.m2) / spec.m1;
  MarginValue psi{std::cos(spec.m1 * theta + spec.m2) - spec.m3, 1};
  psi.slope = spec.m1 * std::sin(spec.m1 * theta + spec.m2) / std::max(std::sin(theta), 1e-6);
  if (spec.guard != MarginGuard::none && end < std::numbers::pi && c <= std::cos(end)) {
    psi.slope = 1;
    psi.value = spec.guard == MarginGuard::hard ? c - spec.m2 * std::sin(spec.m2) - spec.m3
                                                : c - 1 - std::cos(end) - spec.m3;
  }
  if (spec.straight) psi.slope = 1;
  return psi;
}

struct MarginResult {
  std::vector<double> losses;  // of the samples
  std::int64_t right = 0, undirected = 0;
  /// Sums of radians, and of how many samples: to the own centre, and to the nearest other, where
  /// those that the filter takes out are at a right angle.
  double own_angles = 0, other_angles = 0;
  std::int64_t with_others = 0;
  Rows dx, dw;  // of `dloss` times the sum of the losses
};

inline MarginResult margin_softmax(const MarginSpec& spec, const Rows& x, const Rows& w,
                                   const std::vector<std::int32_t>& labels, double dloss) {
  MarginResult result;
  const std::size_t columns = x.empty() ? 0 : x[0].size();
  Rows of_x(x.size(), std::vector<double>(columns, 0)),
      of_w(w.size(), std::vector<double>(columns));
  for (std::size_t n = 0; n < x.size(); ++n) {
    const std::vector<double> direction = unit(x[n]);
    std::vector<double> z(w.size()), slope(w.size(), spec.scale);
    for (std::size_t j = 0; j < w.size(); ++j) {
      const double c = dot(direction, unit(w[j]));
      z[j] = spec.scale * std::clamp(c, -1.0, 1.0);
      if (static_cast<std::int32_t>(j) == labels[n]) {
        const MarginValue psi = margin_value(spec, c);
        result.own_angles += std::acos(std::clamp(c, -1.0, 1.0));
        z[j] = spec.scale * psi.value;
        slope[j] = spec.scale * psi.slope;
      } else if (spec.filter > 0 && c > spec.filter) {
        z[j] = slope[j] = 0;
      }
    }
    const double largest = *std::max_element(z.begin(), z.end());
    double sum = 0;
    for (const double value : z) sum += std::exp(value - largest);
    const auto own = static_cast<std::size_t>(labels[n]);
    double nearest = -INFINITY;
    for (std::size_t j = 0; j < z.size(); ++j)
      nearest = j == own ? nearest : std::max(nearest, z[j]);
    result.with_others += w.size() > 1 ? 1 : 0;
    if (w.size() > 1) result.other_angles += std::acos(nearest / spec.scale);
    result.losses.push_back(std::log(sum) + largest - z[own]);
    const bool directed = dot(direction, direction) > 0;
    result.right += directed && z[own] >= largest ? 1 : 0;
    result.undirected += directed ? 0 : 1;
    for (std::size_t j = 0; j < w.size(); ++j) {
      const double p = std::exp(z[j] - largest) / sum;
      const double g = dloss * slope[j] * (p - (j == own ? 1 : 0));
      const std::vector<double> centre = unit(w[j]);
      for (std::size_t i = 0; i < columns; ++i) {
        of_x[n][i] += g * centre[i];
        of_w[j][i] += g * direction[i];
      }
    }
  }
  for (std::size_t n = 0; n < x.size(); ++n) result.dx.push_back(through_norm(x[n], of_x[n]));
  for (std::size_t j = 0; j < w.size(); ++j) result.dw.push_back(through_norm(w[j], of_w[j]));
  return result;
}

}  // namespace ringlet::test::reference
