// Matrix products on row-major float matrices, by OpenBLAS, on the thread that calls. Any number of
// threads may call at once.
#pragma once

#include <cblas.h>

#include <cstdint>

namespace ringlet::impl {

/// A matrix in memory: consecutive rows are `stride` elements apart. `transposed` says that the
/// product takes its transpose.
struct Matrix {
  const float* data = nullptr;
  std::int64_t stride = 0;
  bool transposed = false;
};

/// Held by each product while it runs: makes sure that OpenBLAS has memory for it.
///
/// OpenBLAS takes 128 MiB of addresses for each product that runs at the same time, and keeps them.
/// Where it gets none it tries for ever (blas_memory_alloc of 0.3.21). So where addresses are
/// limited (ulimit -v), and more products run than ever before, this asks the system first.
class GemmMemory {
 public:
  /// Throws std::bad_alloc where the addresses are used up.
  GemmMemory();
  ~GemmMemory();
  GemmMemory(const GemmMemory&) = delete;
  GemmMemory& operator=(const GemmMemory&) = delete;
};

/// Keeps OpenBLAS from sharing a product between threads of its own: a replica brings its threads.
inline void use_calling_thread_only() {
  static const bool told = (openblas_set_num_threads(1), true);
  (void)told;
}

/// c = beta * c + a b, with a [m, k] and b [k, n] as they are taken, and c [m, n]. With beta = 0, c
/// is not read. Throws std::bad_alloc where OpenBLAS would have no memory.
inline void gemm(std::int64_t m, std::int64_t n, std::int64_t k, const Matrix& a, const Matrix& b,
                 float beta, float* c, std::int64_t c_stride) {
  if (m == 0 || n == 0) return;
  use_calling_thread_only();
  const GemmMemory memory;
  const auto order = [](const Matrix& matrix) {
    return matrix.transposed ? CblasTrans : CblasNoTrans;
  };
  const auto size = [](std::int64_t extent) { return static_cast<blasint>(extent); };
  cblas_sgemm(CblasRowMajor, order(a), order(b), size(m), size(n), size(k), 1.0F, a.data,
              size(a.stride), b.data, size(b.stride), beta, c, size(c_stride));
}

}  // namespace ringlet::impl
