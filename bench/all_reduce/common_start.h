// CommonStart: where ranks of one machine meet, and leave at the same time.
//
// The last to come says when all leave, a moment later by the machine's clock. Left to the cache
// alone, it would go before the others: a line that they look at has to be taken from them first,
// and has to come back. A short broadcast takes as long as that, and its time would depend on
// whether its root or another rank was the last.
#pragma once

#include <atomic>
#include <cstdint>

#include "base/trace.h"

namespace ringlet::bench {

/// In memory that the ranks share, be they threads or processes. Zero, as new memory is, it begins.
class CommonStart {
 public:
  /// Returns when every one of `ranks` has come. pause(looks) is called while this rank waits for
  /// others, after each look; it may throw.
  template <class Pause>
  void meet(int ranks, Pause pause) {
    const std::int64_t before = leave_ns_.load(std::memory_order_acquire);
    if (arrived_.fetch_add(1, std::memory_order_acq_rel) + 1 == ranks) {
      arrived_.store(0, std::memory_order_relaxed);
      leave_ns_.store(now_ns() + kNoticeNs, std::memory_order_release);
    }
    std::int64_t leave = leave_ns_.load(std::memory_order_acquire);
    for (int looks = 1; leave == before; ++looks) {
      pause(looks);
      leave = leave_ns_.load(std::memory_order_acquire);
    }
    while (now_ns() < leave) {
    }
  }

  static constexpr std::int64_t kNoticeNs = 1000;  ///< in which all see when they leave

 private:
  alignas(64) std::atomic<int> arrived_{0};
  alignas(64) std::atomic<std::int64_t> leave_ns_{0};  // the latest time, by now_ns()
  static_assert(std::atomic<int>::is_always_lock_free &&
                std::atomic<std::int64_t>::is_always_lock_free);
};

}  // namespace ringlet::bench
