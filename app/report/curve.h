// Curves: numbers over numbers, and how thousands of them become a line that one can see.
#pragma once

#include <cstddef>
#include <vector>

namespace ringlet::app::report {

/// y over x, of the same length. A y that is not finite is a gap.
struct Curve {
  std::vector<double> x{}, y{};
  std::size_t size() const { return x.size(); }
  void add(double at, double value) {
    x.push_back(at);
    y.push_back(value);
  }
};

/// The exponential mean of what came before each point, over about `window` points; begins unbiased
/// (the first is itself). Gaps stay gaps.
Curve smoothed(const Curve& curve, double window);

/// At most about `points` points: the means of neighbours.
Curve thinned(const Curve& curve, std::size_t points);

/// At most about `points` points, at the positions of thinned(): the value below which the part
/// `share` lies of what came before each, over about `window` points, and not fewer than ten.
Curve rolling_quantile(const Curve& curve, std::size_t points, double window, double share);

/// At most about `points` points that show how far the curve went: the least and the largest of
/// each run of neighbours, in their order.
Curve outline(const Curve& curve, std::size_t points);

}  // namespace ringlet::app::report
