// Weights, images and signs by formulas: what tests/oracle/make_resnet_reference.py trained PyTorch
// on, where they are written out.
#pragma once

#include <cmath>
#include <cstdint>
#include <string_view>
#include <vector>

#include "kernels/shape.h"
#include "tests/oracle/formula_data.h"

namespace ringlet::oracle {

inline constexpr int kResNetSide = 8;

/// Of sample i at row y and column x, both below kResNetSide.
constexpr std::uint8_t resnet_pixel(std::uint32_t i, std::uint32_t y, std::uint32_t x) {
  return formula_pixel(i, 3 * y + 2, 3 * x + 2);
}

constexpr std::uint32_t fnv1a(std::string_view text) {
  std::uint32_t hash = 0x811c9dc5;
  for (const char c : text) hash = (hash ^ static_cast<unsigned char>(c)) * 0x01000193;
  return hash;
}

/// In [-1, 1), exact in f32.
inline double uniform(std::string_view name, std::uint32_t j) {
  return static_cast<double>(mix(fnv1a(name) + 2654435769U * j) >> 8) / 0x1p23 - 1;
}

/// The parameter `name`, which has this shape. `features`: inputs of the linear layer.
inline std::vector<float> resnet_start(std::string_view name, const Shape& shape,
                                       std::int64_t features) {
  std::vector<float> values;
  for (std::uint32_t j = 0; j < static_cast<std::uint32_t>(shape.count()); ++j) {
    double u = uniform(name, j);
    if (shape.rank() == 4) {
      u *= std::sqrt(6 / static_cast<double>(shape[0] * shape[2] * shape[3]));
    } else if (name.starts_with("fc.")) {
      u /= std::sqrt(static_cast<double>(features));
    } else if (name.ends_with("weight")) {
      u = (1 + u / 4) / 4;
    } else {
      u = ((j % 4 == 3 ? -3 : 3) + u / 4) / 4;
    }
    values.push_back(static_cast<float>(u));
  }
  return values;
}

/// The L2 norm, and the sum with the formula's signs.
struct Summary {
  double norm = 0, sum = 0;
};
inline Summary summary_of(const std::vector<float>& values) {
  Summary summary;
  for (std::uint32_t j = 0; j < values.size(); ++j) {
    const auto value = static_cast<double>(values[j]);
    summary.norm += value * value;
    summary.sum += (mix(j + 12345) & 1) == 0 ? value : -value;
  }
  summary.norm = std::sqrt(summary.norm);
  return summary;
}

}  // namespace ringlet::oracle
