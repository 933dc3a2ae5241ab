// How a matrix product is told to cuBLASLt. Nothing here needs a GPU.
#pragma once

#include <cstdint>
#include <memory>

#include "kernels/activation.h"
#include "kernels/cuda/cublas_lt.h"
#include "kernels/cuda/linear_matmul.h"

namespace ringlet {

/// Everything that the choice of an algorithm depends on, beside what a stream fixes once (tf32,
/// deterministic).
struct MatmulKey {
  MatmulSize size;
  DType factors = DType::f32, result = DType::f32;
  cublasLtEpilogue_t epilogue = CUBLASLT_EPILOGUE_DEFAULT;
  /// Bytes that the addresses are multiples of, 256 at most.
  std::uint32_t a_alignment = 0, b_alignment = 0, d_alignment = 0;
  bool operator==(const MatmulKey&) const = default;
};

/// With a bias, which is of the result's type, that is f32.
MatmulKey matmul_key(const Matmul& matmul, bool bias, Activation activation);

/// Of a product whose epilogue also sums op(b) over k, one sum a column (BGRADB). For
/// linear_backward_weight_matmul() op(b) is dy, so these are the gradients of the bias.
MatmulKey matmul_key_with_bias_gradient(const Matmul& matmul);

/// The operation and the matrices.
class MatmulDescriptors {
 public:
  /// Throws DeviceError when cuBLASLt does not take it.
  MatmulDescriptors(const MatmulKey& key, bool tf32);

  cublasLtMatmulDesc_t operation() const { return operation_.get(); }
  cublasLtMatrixLayout_t a() const { return a_.get(); }
  cublasLtMatrixLayout_t b() const { return b_.get(); }
  cublasLtMatrixLayout_t d() const { return d_.get(); }

  /// Where the epilogue finds the bias, or puts its gradient; may be set anew before each product.
  void set_bias(const float* bias);

 private:
  std::unique_ptr<cublasLtMatmulDescOpaque_t, decltype(&cublasLtMatmulDescDestroy)> operation_;
  using Layout =
      std::unique_ptr<cublasLtMatrixLayoutOpaque_t, decltype(&cublasLtMatrixLayoutDestroy)>;
  static Layout make_layout(DType dtype, std::int64_t rows, std::int64_t columns);
  Layout a_, b_, d_;
};

/// Limits what the heuristic may propose.
class MatmulPreference {
 public:
  MatmulPreference(const MatmulKey& key, std::int64_t workspace_limit, bool deterministic);
  cublasLtMatmulPreference_t handle() const { return handle_.get(); }

 private:
  std::unique_ptr<cublasLtMatmulPreferenceOpaque_t, decltype(&cublasLtMatmulPreferenceDestroy)>
      handle_;
};

}  // namespace ringlet
