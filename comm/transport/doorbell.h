// Doorbell: one thread waits here for a condition that other threads make true.
//
// It spins for a moment, which is fastest when the others run on processors of their own. Then it
// yields its processor between two looks, in case one of the others waits for the same one. Then it
// sleeps.
//
// No wake-up is lost: the sleeper announces itself before it looks a last time, and the others
// change their state before they look for a sleeper. Both do so with sequentially consistent
// operations, so at least one of the two sees the other. Ringing where nobody sleeps costs one
// load.
//
// All state is one word, on which the system lets threads sleep (futex(2)). So a doorbell, and what
// `ready` looks at, may lie in memory that several processes share.
#pragma once

#include <atomic>
#include <chrono>
#include <cstdint>

#include "base/processors.h"
#include "base/spin.h"

namespace ringlet::comm {

class alignas(64) Doorbell {
 public:
  using Clock = std::chrono::steady_clock;

  /// Waits until ready() holds; false when `timeout` has passed before. `ready` reads atomics with
  /// sequentially consistent loads.
  template <class Ready>
  bool wait(Ready ready, std::chrono::nanoseconds spin, std::chrono::nanoseconds timeout) {
    const int looks = spin.count() > 0 ? kLooksAtOnce : kLooksBeforeSleep;
    for (int i = 0; i < looks; ++i) {
      if (ready()) return true;
    }
    const Clock::time_point start = Clock::now();
    if (spin_until(ready, spin)) return true;
    while (true) {
      asleep_.store(1);
      const bool is_ready = ready();
      const Clock::duration waited = Clock::now() - start;
      if (!is_ready && waited < timeout) sleep(timeout - waited);
      asleep_.store(0);
      if (is_ready || waited >= timeout) return is_ready;
    }
  }

  /// Wakes the thread that waits, if it sleeps. Call it after a sequentially consistent store to
  /// what `ready` reads.
  void ring() noexcept {
    if (asleep_.load() != 0 && asleep_.exchange(0) != 0) wake();
  }

 private:
  /// Sleeps until asleep_ is no longer 1 or `longest` has passed. May also return for no reason.
  void sleep(std::chrono::nanoseconds longest) noexcept;
  void wake() noexcept;

  // As long as a short message takes, without the instruction that relaxes a processor: by that a
  // rank would notice up to 40 ns later. A look at the clock takes longer too.
  static constexpr int kLooksAtOnce = 100;
  static constexpr int kLooksBeforeSleep = 16;
  std::atomic<std::uint32_t> asleep_{0};
  static_assert(std::atomic<std::uint32_t>::is_always_lock_free);
};

}  // namespace ringlet::comm
