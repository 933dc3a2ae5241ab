// WorkClock: when somebody last got on with their work. Others read it to tell work that takes long
// from none.
#pragma once

#include <atomic>
#include <cstdint>
#include <ctime>

namespace ringlet::comm {

/// now_ns(), as of the system's last tick: some milliseconds old, and cheaper to read.
inline std::int64_t coarse_now_ns() noexcept {
  constexpr std::int64_t kNanoseconds = 1'000'000'000;
  timespec time{};
  ::clock_gettime(CLOCK_MONOTONIC_COARSE, &time);
  return time.tv_sec * kNanoseconds + time.tv_nsec;
}

/// Any thread may note, and read.
class WorkClock {
 public:
  void note() noexcept { at_ns_.store(coarse_now_ns(), std::memory_order_relaxed); }
  std::int64_t at_ns() const noexcept { return at_ns_.load(std::memory_order_relaxed); }  ///< or 0

 private:
  std::atomic<std::int64_t> at_ns_{0};
};

}  // namespace ringlet::comm
