// Division by a number that is known before the loop. A GPU has no instruction for it: a division
// of 64-bit integers takes some seventy, more than all else that a kernel does for an element.
//
// Source: Granlund and Montgomery, "Division by invariant integers using multiplication", PLDI
// 1994. With m = ceil(2^p / d) and p = 31 + ceil(log2 d), n / d = n m >> p for all n < 2^31.
#pragma once

#include <cstdint>

#include "kernels/host_device.h"

namespace ringlet::grid {

class Divisor {
 public:
  /// divisor >= 1.
  explicit Divisor(std::int64_t divisor) : divisor_(divisor) {
    if (divisor >= kSmall) return;  // 0 is right for every small n
    int log = 0;
    while ((std::int64_t{1} << log) < divisor) ++log;
    shift_ = 31 + log;
    multiplier_ = ((std::uint64_t{1} << shift_) - 1) / static_cast<std::uint64_t>(divisor) + 1;
  }

  RINGLET_HOST_DEVICE std::int64_t divisor() const { return divisor_; }

  /// n / divisor, n >= 0. Large numbers take the slow way: right, and seldom there.
  RINGLET_HOST_DEVICE std::int64_t quotient(std::int64_t n) const {
    if (n >= kSmall) return n / divisor_;
    return static_cast<std::int64_t>((static_cast<std::uint64_t>(n) * multiplier_) >> shift_);
  }
  RINGLET_HOST_DEVICE std::int64_t remainder(std::int64_t n) const {
    return n - quotient(n) * divisor_;
  }

 private:
  static constexpr std::int64_t kSmall = std::int64_t{1} << 31;

  std::int64_t divisor_;
  std::uint64_t multiplier_ = 0;
  int shift_ = 0;
};

}  // namespace ringlet::grid
