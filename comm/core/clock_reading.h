// The clocks of several machines. Each has a steady clock of its own, which begins when it likes
// and goes at a rate of its own.
#pragma once

#include <cstdint>

namespace ringlet::comm {

/// Process 0's steady clock beside this process's, in nanoseconds.
struct ClockReading {
  std::int64_t at_ns = 0;      ///< by this process's clock
  std::int64_t ahead_ns = 0;   ///< process 0's time then, less at_ns
  std::int64_t within_ns = 0;  ///< ahead_ns is at most so wrong, either way
};

}  // namespace ringlet::comm
