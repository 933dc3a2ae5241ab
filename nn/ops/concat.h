// Differentiable concatenation (kernels/concat.h).
#pragma once

#include <span>

#include "nn/variable.h"

namespace ringlet::nn {

/// The parts side by side along the second extent, channels or features: [N, C1 + C2 + ...]. Of one
/// tape, type and layout, their other extents equal. At most kMostParts.
Variable concat(std::span<const Variable> parts);
inline Variable concat(std::initializer_list<Variable> parts) {
  return concat(std::span(parts.begin(), parts.size()));
}

inline constexpr std::size_t kMostParts = 8;

}  // namespace ringlet::nn
