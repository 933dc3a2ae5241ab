// Processors give a NaN either sign, and "-nan" is read as something else.
#pragma once

#include <cmath>
#include <limits>

namespace ringlet {

/// `value`; a NaN without a sign.
inline double unsigned_nan(double value) {
  return std::isnan(value) ? std::numeric_limits<double>::quiet_NaN() : value;
}

}  // namespace ringlet
