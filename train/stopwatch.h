// Seconds since construction.
#pragma once

#include <cstdint>

#include "kernels/trace.h"

namespace ringlet::train {

class Stopwatch {
 public:
  double seconds() const { return static_cast<double>(now_ns() - begin_ns_) * 1e-9; }

 private:
  std::int64_t begin_ns_ = now_ns();
};

}  // namespace ringlet::train
