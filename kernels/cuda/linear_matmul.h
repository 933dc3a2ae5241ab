// The three products of a linear layer, for a library that knows column-major matrices only.
//
// The memory of a row-major matrix M [r, c] is that of the column-major matrix M^T [c, r], with
// leading dimension c. So each product is transposed as a whole, which swaps its factors. A factor
// whose memory then holds its transpose is marked `transpose`:
//
//   row-major             column-major             A                  B
//   y  [N, O] = x w^T     y^T  [O, N] = w x^T      w, `transpose`d    x
//   dx [N, I] = dy w      dx^T [I, N] = w^T dy^T   w                  dy
//   dw [O, I] = dy^T x    dw^T [I, O] = x^T dy     x                  dy, `transpose`d
//
// The bias is one number per output, so one per row of y^T: cuBLASLt's epilogues add just that.
#pragma once

#include <cstdint>

#include "kernels/tensor.h"

namespace ringlet {

struct MatmulSize {
  std::int64_t m = 0, n = 0, k = 0;
  bool transpose_a = false, transpose_b = false;
  bool operator==(const MatmulSize&) const = default;

  /// Rows (the leading dimension too) and columns of the factors as they lie in memory.
  std::int64_t a_rows() const { return transpose_a ? k : m; }
  std::int64_t a_columns() const { return transpose_a ? m : k; }
  std::int64_t b_rows() const { return transpose_b ? n : k; }
  std::int64_t b_columns() const { return transpose_b ? k : n; }
};

/// d [m, n] = beta * d + op(a) [m, k] op(b) [k, n]; column-major and dense, with sums in f32.
struct Matmul {
  MatmulSize size;
  const void* a = nullptr;
  const void* b = nullptr;
  void* d = nullptr;
  DType factors = DType::f32;  // f32, bf16 or f16, of both factors
  DType result = DType::f32;   // that of the factors, or f32
};

inline Matmul matmul_of(const MatmulSize& size, const ConstView& a, const ConstView& b,
                        const View& d) {
  return {size, a.data(), b.data(), d.data(), a.dtype(), d.dtype()};
}

/// x [N, I], w [O, I], y [N, O].
inline Matmul linear_forward_matmul(const ConstView& x, const ConstView& w, const View& y) {
  return matmul_of({w.shape()[0], x.shape()[0], x.shape()[1], true, false}, w, x, y);
}

/// w [O, I], dy [N, O], dx [N, I].
inline Matmul linear_backward_data_matmul(const ConstView& w, const ConstView& dy, const View& dx) {
  return matmul_of({w.shape()[1], dy.shape()[0], w.shape()[0], false, false}, w, dy, dx);
}

/// x [N, I], dy [N, O], dw [O, I].
inline Matmul linear_backward_weight_matmul(const ConstView& x, const ConstView& dy,
                                            const View& dw) {
  return matmul_of({x.shape()[1], dy.shape()[1], x.shape()[0], false, true}, x, dy, dw);
}

}  // namespace ringlet
