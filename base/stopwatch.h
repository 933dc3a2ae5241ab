// Seconds since construction, and the seconds of a phase of the step.
#pragma once

#include <cstdint>

#include "base/trace.h"

namespace ringlet {

class Stopwatch {
 public:
  double seconds() const { return static_cast<double>(now_ns() - begin_ns_) * 1e-9; }

 private:
  std::int64_t begin_ns_ = now_ns();
};

/// Adds the time of its life to a phase, and shows it in the trace where there is one.
class PhaseTimer {
 public:
  explicit PhaseTimer(double& seconds, Tracer* tracer = nullptr, const char* name = "")
      : seconds_(seconds), span_(tracer, name, "phase") {}
  ~PhaseTimer() { seconds_ += watch_.seconds(); }
  PhaseTimer(const PhaseTimer&) = delete;
  PhaseTimer& operator=(const PhaseTimer&) = delete;

 private:
  double& seconds_;
  Stopwatch watch_;
  ScopedSpan span_;
};

}  // namespace ringlet
