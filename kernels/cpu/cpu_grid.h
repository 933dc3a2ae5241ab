// CpuGrid: runs kernels of kernels/grid/ on the processor's threads, for operations where nobody
// asks for more speed than a plain loop has. It has what grid.h says that is needed so far.
#pragma once

#include <cstdint>

#include "kernels/cpu/loops.h"

namespace ringlet::impl {

class CpuGrid {
 public:
  explicit CpuGrid(CpuStream& stream) : stream_(stream) {}

  template <class F>
  void for_each(const char*, std::int64_t n, const F& f) {
    for_each_element(stream_, n, f);
  }

 private:
  CpuStream& stream_;
};

}  // namespace ringlet::impl
