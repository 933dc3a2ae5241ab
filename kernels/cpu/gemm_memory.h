// GemmMemory: while it lives, OpenBLAS has the memory of one product more.
//
// OpenBLAS takes 128 MiB of addresses for each product that runs at the same time, and keeps them.
// Where there are none it asks again for ever (blas_memory_alloc of 0.3.21). So where addresses are
// limited (ulimit -v), a product that needs more than were taken before asks the system first.
#pragma once

namespace ringlet::impl {

class GemmMemory {
 public:
  /// Throws std::bad_alloc where the addresses are used up.
  GemmMemory();
  ~GemmMemory();
  GemmMemory(const GemmMemory&) = delete;
  GemmMemory& operator=(const GemmMemory&) = delete;
};

}  // namespace ringlet::impl
