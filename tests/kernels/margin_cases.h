// Samples, centres and margins for the tests of kernels/margin_softmax.h, and the whole loss from
// the operations of any that run them.
#pragma once

#include <algorithm>
#include <string>
#include <vector>

#include "kernels/margin_softmax.h"
#include "tests/reference/margin_softmax.h"
#include "tests/support/tensors.h"

namespace ringlet::test {

inline MarginSpec spec_of(double m1, double m2, double m3, MarginGuard guard, bool straight = false,
                          double filter = 0) {
  return {.scale = 16,
          .m1 = m1,
          .m2 = m2,
          .m3 = m3,
          .filter = filter,
          .guard = guard,
          .straight = straight};
}

struct MarginCase {
  std::string name;
  MarginSpec spec;
};

inline std::vector<MarginCase> margin_cases() {
  using enum MarginGuard;
  return {{"normface", spec_of(1, 0, 0, hard)},
          {"cosface", spec_of(1, 0, 0.35, hard)},
          {"arcface", spec_of(1, 0.5, 0, none)},
          {"arcface, hard", spec_of(1, 0.5, 0, hard)},
          {"arcface, smooth", spec_of(1, 2.5, 0, smooth)},
          {"arcface, straight", spec_of(1, 0.5, 0, none, true)},
          {"arcface, filter", spec_of(1, 0.5, 0, hard, false, 0.1)},
          {"combined", spec_of(1.5, 0.3, 0.2, smooth)},
          {"combined, hard, filter", spec_of(2, 0.3, 0.1, hard, false, 0.2)},
          {"combined, no guard", spec_of(0.75, 0.3, 0.2, none)}};
}

struct MarginData {
  reference::Rows x, w;
  std::vector<std::int32_t> labels;
};

/// Sample 0 lies almost in its centre's direction, 1 almost against it, 2 has no length; nor has
/// centre 1.
inline MarginData margin_data(std::int64_t samples, std::int64_t classes, std::int64_t columns) {
  const auto rows = [columns](std::int64_t count, std::uint32_t seed) {
    const auto values = random_floats(count * columns, seed);
    reference::Rows result;
    for (std::int64_t r = 0; r < count; ++r) {
      const auto begin = values.begin() + r * columns;
      result.emplace_back(begin, begin + columns);
    }
    return result;
  };
  MarginData data{rows(samples, 1), rows(classes, 2),
                  random_labels(samples, 3, static_cast<std::int32_t>(classes))};
  const auto near = [&](std::size_t n, double sign) {
    if (n >= data.x.size()) return;
    const auto& centre = data.w[static_cast<std::size_t>(data.labels[n])];
    for (std::size_t i = 0; i < centre.size(); ++i) {
      const double away = 0.02 * data.x[n][i];
      data.x[n][i] = static_cast<double>(static_cast<float>(sign * centre[i] + away));
    }
  };
  if (classes > 2) std::fill(data.w[1].begin(), data.w[1].end(), 0);
  near(0, 2);
  near(1, -2);
  if (samples > 2) std::fill(data.x[2].begin(), data.x[2].end(), 0);
  return data;
}

inline std::vector<float> flat(const reference::Rows& rows) {
  std::vector<float> values;
  for (const auto& row : rows) {
    for (const double value : row) values.push_back(static_cast<float>(value));
  }
  return values;
}

inline std::vector<double> flat_doubles(const reference::Rows& rows) {
  std::vector<double> values;
  for (const auto& row : rows) values.insert(values.end(), row.begin(), row.end());
  return values;
}

}  // namespace ringlet::test
