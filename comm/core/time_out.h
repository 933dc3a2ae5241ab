// Time-outs are given in seconds, and may be endless.
#pragma once

#include <algorithm>
#include <chrono>
#include <cstdint>

namespace ringlet::comm {

/// `seconds`, at most some three years: a clock's time can be added to that. Less than none, or no
/// number, is none.
inline std::chrono::nanoseconds nanoseconds_of(double seconds) {
  constexpr double kLongest = 1e8;
  return std::chrono::nanoseconds(
      static_cast<std::int64_t>(std::min(std::max(0.0, seconds), kLongest) * 1e9));
}

}  // namespace ringlet::comm
