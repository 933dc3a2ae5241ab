// Spinning: how a thread waits for another one for less time than falling asleep and being woken
// takes.
#pragma once

#include <chrono>
#include <thread>

#include "base/processors.h"

namespace ringlet {

/// Looks whether ready() holds until it does, or `longest` has passed: then false. After some
/// microseconds it yields its processor between two looks, in case one who is waited for, or a
/// helper of theirs, waits for the same one.
template <class Ready>
bool spin_until(Ready ready, std::chrono::nanoseconds longest) {
  using Clock = std::chrono::steady_clock;
  constexpr int kLooksBetweenClocks = 32;  // a look at the clock takes longer
  constexpr std::chrono::microseconds kYieldAfter(5);
  const Clock::time_point start = Clock::now();
  for (Clock::duration waited{}; waited < longest; waited = Clock::now() - start) {
    if (waited > kYieldAfter) std::this_thread::yield();
    for (int look = 0; look < kLooksBetweenClocks; ++look) {
      if (ready()) return true;
      relax_processor();
    }
  }
  return false;
}

}  // namespace ringlet
