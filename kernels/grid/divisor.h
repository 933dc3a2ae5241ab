// Division by a number that is known before the loop. A GPU has no instruction for it: a division
// of 64-bit integers takes some seventy, more than all else that a kernel does for an element.
//
// Source: Granlund and Montgomery, "Division by invariant integers using multiplication", PLDI
// 1994. With m = ceil(2^p / d) and p = 31 + ceil(log2 d), n / d = n m >> p for all n < 2^31. m has
// 32 bits, and so has 2 n: the upper half of their product, shifted by the logarithm, is n m >> p.
#pragma once

#include <cstdint>

#include "base/host_device.h"

namespace ringlet::grid {

class Divisor {
 public:
  /// divisor >= 1.
  explicit Divisor(std::int64_t divisor) : divisor_(divisor) {
    if (divisor >= kSmall) return;  // 0 is right for every small n
    while ((std::int64_t{1} << shift_) < divisor) ++shift_;
    const std::uint64_t power = std::uint64_t{1} << (31 + shift_);
    multiplier_ = static_cast<std::uint32_t>((power - 1) / static_cast<std::uint64_t>(divisor) + 1);
  }

  RINGLET_HOST_DEVICE std::int64_t divisor() const { return divisor_; }

  /// n / divisor, n >= 0: three instructions.
  RINGLET_HOST_DEVICE std::int32_t quotient(std::int32_t n) const {
    const std::uint64_t product = std::uint64_t{static_cast<std::uint32_t>(n) << 1} * multiplier_;
    return static_cast<std::int32_t>(static_cast<std::uint32_t>(product >> 32) >> shift_);
  }
  /// The same. Large numbers take the slow way: right, and seldom there.
  RINGLET_HOST_DEVICE std::int64_t quotient(std::int64_t n) const {
    if (n >= kSmall) return n / divisor_;
    return quotient(static_cast<std::int32_t>(n));
  }
  template <class Integer>
  RINGLET_HOST_DEVICE Integer remainder(Integer n) const {
    return n - quotient(n) * static_cast<Integer>(divisor_);
  }

 private:
  static constexpr std::int64_t kSmall = std::int64_t{1} << 31;

  std::int64_t divisor_;
  std::uint32_t multiplier_ = 0;
  int shift_ = 0;
};

}  // namespace ringlet::grid
