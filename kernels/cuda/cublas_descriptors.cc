#include "kernels/cuda/cublas_descriptors.h"

#include "kernels/cuda/views.h"

namespace ringlet {

namespace {

/// Of narrow factors tensor cores take the products as they are, and add them up in f32.
cublasLtMatmulDesc_t create_operation(DType factors, bool tf32) {
  const bool rounds = tf32 && factors == DType::f32;
  const cublasComputeType_t compute = rounds ? CUBLAS_COMPUTE_32F_FAST_TF32 : CUBLAS_COMPUTE_32F;
  cublasLtMatmulDesc_t handle = nullptr;
  check_cublas(cublas_lt().cublasLtMatmulDescCreate(&handle, compute, CUDA_R_32F),
               "cublasLtMatmulDescCreate");
  return handle;
}

cublasLtMatmulPreference_t create_preference() {
  cublasLtMatmulPreference_t handle = nullptr;
  check_cublas(cublas_lt().cublasLtMatmulPreferenceCreate(&handle),
               "cublasLtMatmulPreferenceCreate");
  return handle;
}

template <class T>
void set(cublasLtMatmulDesc_t operation, cublasLtMatmulDescAttributes_t name, const T& value) {
  check_cublas(cublas_lt().cublasLtMatmulDescSetAttribute(operation, name, &value, sizeof(value)),
               "cublasLtMatmulDescSetAttribute");
}

template <class T>
void set(cublasLtMatmulPreference_t preference, cublasLtMatmulPreferenceAttributes_t name,
         const T& value) {
  check_cublas(
      cublas_lt().cublasLtMatmulPreferenceSetAttribute(preference, name, &value, sizeof(value)),
      "cublasLtMatmulPreferenceSetAttribute");
}

cublasLtEpilogue_t epilogue_of(bool bias, Activation activation) {
  if (activation == Activation::relu) {
    return bias ? CUBLASLT_EPILOGUE_RELU_BIAS : CUBLASLT_EPILOGUE_RELU;
  }
  return bias ? CUBLASLT_EPILOGUE_BIAS : CUBLASLT_EPILOGUE_DEFAULT;
}

MatmulKey make_matmul_key(const Matmul& matmul, cublasLtEpilogue_t epilogue) {
  const auto alignment = [](const void* address) {
    return static_cast<std::uint32_t>(alignment_of(address, 256));  // no kernel wants more
  };
  return {matmul.size,         matmul.factors,      matmul.result,      epilogue,
          alignment(matmul.a), alignment(matmul.b), alignment(matmul.d)};
}

cudaDataType_t data_type_of(DType dtype) {
  if (dtype == DType::bf16) return CUDA_R_16BF;
  return dtype == DType::f16 ? CUDA_R_16F : CUDA_R_32F;
}

cublasOperation_t operation_of(bool transpose) { return transpose ? CUBLAS_OP_T : CUBLAS_OP_N; }

}  // namespace

MatmulKey matmul_key(const Matmul& matmul, bool bias, Activation activation) {
  return make_matmul_key(matmul, epilogue_of(bias, activation));
}

MatmulKey matmul_key_with_bias_gradient(const Matmul& matmul) {
  return make_matmul_key(matmul, CUBLASLT_EPILOGUE_BGRADB);
}

MatmulDescriptors::MatmulDescriptors(const MatmulKey& key, bool tf32)
    : operation_(create_operation(key.factors, tf32), cublas_lt().cublasLtMatmulDescDestroy),
      a_(make_layout(key.factors, key.size.a_rows(), key.size.a_columns())),
      b_(make_layout(key.factors, key.size.b_rows(), key.size.b_columns())),
      d_(make_layout(key.result, key.size.m, key.size.n)) {
  set(operation(), CUBLASLT_MATMUL_DESC_TRANSA, operation_of(key.size.transpose_a));
  set(operation(), CUBLASLT_MATMUL_DESC_TRANSB, operation_of(key.size.transpose_b));
  set(operation(), CUBLASLT_MATMUL_DESC_EPILOGUE, key.epilogue);
}

MatmulDescriptors::Layout MatmulDescriptors::make_layout(DType dtype, std::int64_t rows,
                                                         std::int64_t columns) {
  cublasLtMatrixLayout_t handle = nullptr;
  check_cublas(cublas_lt().cublasLtMatrixLayoutCreate(&handle, data_type_of(dtype),
                                                      static_cast<std::uint64_t>(rows),
                                                      static_cast<std::uint64_t>(columns), rows),
               "cublasLtMatrixLayoutCreate");
  return {handle, cublas_lt().cublasLtMatrixLayoutDestroy};
}

void MatmulDescriptors::set_bias(const float* bias) {
  set(operation(), CUBLASLT_MATMUL_DESC_BIAS_POINTER, bias);
}

MatmulPreference::MatmulPreference(const MatmulKey& key, std::int64_t workspace_limit,
                                   bool deterministic)
    : handle_(create_preference(), cublas_lt().cublasLtMatmulPreferenceDestroy) {
  set(handle(), CUBLASLT_MATMUL_PREF_MAX_WORKSPACE_BYTES,
      static_cast<std::uint64_t>(workspace_limit));
  set(handle(), CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_A_BYTES, key.a_alignment);
  set(handle(), CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_B_BYTES, key.b_alignment);
  set(handle(), CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_C_BYTES, key.d_alignment);
  set(handle(), CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_D_BYTES, key.d_alignment);
  if (!deterministic) return;
  // Where the sum over k is split, the parts may be added as they come, in the result itself, or in
  // a step of its own, in a fixed order.
  const std::uint32_t in_a_step_of_its_own =
      CUBLASLT_REDUCTION_SCHEME_COMPUTE_TYPE | CUBLASLT_REDUCTION_SCHEME_OUTPUT_TYPE;
  set(handle(), CUBLASLT_MATMUL_PREF_REDUCTION_SCHEME_MASK, in_a_step_of_its_own);
}

}  // namespace ringlet
