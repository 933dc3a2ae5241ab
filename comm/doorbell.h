// Doorbell: one thread waits here until something that other threads do has come true.
//
// It spins for a moment, which is fastest when the others run on processors of their own; soon it
// offers its processor to them between two looks, in case the system has put one of them on the
// same; and then it sleeps. The sleeper announces itself before it looks a last time,
// and the others change their state before they look for a sleeper; with sequentially consistent
// operations on both sides at least one of the two sees the other, so no wake-up is lost, and
// ringing where nobody sleeps costs one load.
#pragma once

#include <atomic>
#include <chrono>
#include <condition_variable>
#include <mutex>
#include <thread>

namespace ringlet::comm {

/// Tells the processor that the caller spins.
#if defined(__x86_64__)
inline void relax_processor() { __builtin_ia32_pause(); }
#else
inline void relax_processor() {}
#endif

class alignas(64) Doorbell {
 public:
  using Clock = std::chrono::steady_clock;

  /// Waits until ready() holds; false when `timeout` has passed before. `ready` reads atomics with
  /// sequentially consistent loads and may be called while a lock is held.
  template <class Ready>
  bool wait(Ready ready, std::chrono::nanoseconds spin, std::chrono::nanoseconds timeout) {
    if (ready()) return true;
    const Clock::time_point start = Clock::now();
    Clock::duration waited{};
    while ((waited = Clock::now() - start) < spin) {
      if (waited > kYieldAfter) std::this_thread::yield();
      for (int i = 0; i < kSpinsPerLook; ++i) {
        if (ready()) return true;
        relax_processor();
      }
    }
    std::unique_lock lock(mutex_);
    asleep_.store(true);
    const bool in_time = rung_.wait_until(lock, start + timeout, ready);
    asleep_.store(false);
    return in_time;
  }

  /// Wakes the thread that waits, if it sleeps. Call it after a sequentially consistent store to
  /// what `ready` reads.
  void ring() noexcept {
    if (!asleep_.load()) return;
    { const std::lock_guard lock(mutex_); }  // the sleeper has the lock until it truly sleeps
    rung_.notify_one();
  }

 private:
  static constexpr int kSpinsPerLook = 32;  // at the clock
  static constexpr std::chrono::microseconds kYieldAfter{5};
  std::atomic<bool> asleep_{false};
  std::mutex mutex_;
  std::condition_variable rung_;
};

}  // namespace ringlet::comm
