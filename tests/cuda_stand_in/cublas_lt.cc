// cuBLASLt as far as Ringlet calls it: column-major products of f32, bf16 or f16, with a bias and
// ReLU behind, or with the sums of op(b) over k (BGRADB). The result is of the factors' type or
// f32. A bias and its gradient are of the result's type, which has to be f32 here.
// RINGLET_STAND_IN_BGRADB=none: that is not supported; loses-nan: it passes over NaN.
// Two algorithms are proposed: the second one wants scratch memory and adds in another order.
#include <cublasLt.h>

#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <vector>

#include "tests/cuda_stand_in/floats.h"
#include "tests/cuda_stand_in/stand_in.h"

namespace {

struct Operation {
  cublasOperation_t transpose_a = CUBLAS_OP_N, transpose_b = CUBLAS_OP_N;
  cublasLtEpilogue_t epilogue = CUBLASLT_EPILOGUE_DEFAULT;
  float* bias = nullptr;  ///< read, or written by BGRADB
};

struct Layout {
  ringlet::DType dtype;
  std::int64_t rows, columns, leading;

  std::size_t count() const { return static_cast<std::size_t>(leading * columns); }
  std::vector<float> widened(const void* data) const {
    std::vector<float> wide(count());
    ringlet::stand_in::widen_floats(dtype, data, wide.size(), wide.data());
    return wide;
  }
};

ringlet::DType dtype_of(cudaDataType type) {
  if (type == CUDA_R_16BF) return ringlet::DType::bf16;
  return type == CUDA_R_16F ? ringlet::DType::f16 : ringlet::DType::f32;
}

template <class T, class Handle>
T& as(Handle handle) {
  return *reinterpret_cast<T*>(handle);
}

constexpr std::size_t kScratchBytes = 1024;
constexpr const char* kOfBgradb = "RINGLET_STAND_IN_BGRADB";

bool says(const char* variable, const char* what) {
  const char* said = std::getenv(variable);
  return said != nullptr && std::strcmp(said, what) == 0;
}

bool has_bias(cublasLtEpilogue_t epilogue) {
  return epilogue == CUBLASLT_EPILOGUE_BIAS || epilogue == CUBLASLT_EPILOGUE_RELU_BIAS;
}

bool has_relu(cublasLtEpilogue_t epilogue) {
  return epilogue == CUBLASLT_EPILOGUE_RELU || epilogue == CUBLASLT_EPILOGUE_RELU_BIAS;
}

struct Product {
  Operation operation;
  const void* a_data;
  const void* b_data;
  void* d_data;
  Layout a_layout, b_layout, d_layout;
  float alpha, beta;
  bool backwards;

  void run() const {
    const std::vector<float> a = a_layout.widened(a_data), b = b_layout.widened(b_data);
    std::vector<float> d(d_layout.count());
    if (beta != 0) d = d_layout.widened(d_data);
    multiply(a.data(), b.data(), d.data());
    ringlet::stand_in::round_floats(d_layout.dtype, d.data(), d.size(), d_data);
  }

 private:
  void multiply(const float* a, const float* b, float* d) const {
    const std::int64_t inner =
        operation.transpose_a == CUBLAS_OP_N ? a_layout.columns : a_layout.rows;
    const auto a_at = [&](std::int64_t i, std::int64_t k) {
      return operation.transpose_a == CUBLAS_OP_N ? a[i + k * a_layout.leading]
                                                  : a[k + i * a_layout.leading];
    };
    const auto b_at = [&](std::int64_t k, std::int64_t j) {
      return operation.transpose_b == CUBLAS_OP_N ? b[k + j * b_layout.leading]
                                                  : b[j + k * b_layout.leading];
    };
    for (std::int64_t j = 0; j < d_layout.columns; ++j) {
      for (std::int64_t i = 0; i < d_layout.rows; ++i) {
        float sum = 0;
        for (std::int64_t step = 0; step < inner; ++step) {
          const std::int64_t k = backwards ? inner - 1 - step : step;
          sum += a_at(i, k) * b_at(k, j);
        }
        float& value = d[i + j * d_layout.leading];
        value = alpha * sum + (beta == 0 ? 0 : beta * value);
        if (has_bias(operation.epilogue)) value += operation.bias[i];
        if (has_relu(operation.epilogue)) value = ringlet::stand_in::relu(value);
      }
    }
    if (operation.epilogue == CUBLASLT_EPILOGUE_BGRADB) sum_columns(inner, b_at);
  }

  /// bias[j] = the sum of op(b)[k, j]
  template <class At>
  void sum_columns(std::int64_t inner, At b_at) const {
    for (std::int64_t j = 0; j < d_layout.columns; ++j) {
      float sum = 0;
      for (std::int64_t step = 0; step < inner; ++step) {
        const float value = b_at(backwards ? inner - 1 - step : step, j);
        if (!(says(kOfBgradb, "loses-nan") && value != value)) sum += value;
      }
      operation.bias[j] = sum;
    }
  }
};

}  // namespace

extern "C" {

std::size_t cublasLtGetVersion() { return CUBLAS_VERSION; }
const char* cublasLtGetStatusName(cublasStatus_t) { return "CUBLAS_STATUS"; }
const char* cublasLtGetStatusString(cublasStatus_t) { return "of the stand-in"; }

cublasStatus_t cublasLtCreate(cublasLtHandle_t* handle) {
  *handle = reinterpret_cast<cublasLtHandle_t>(new int);
  return CUBLAS_STATUS_SUCCESS;
}

cublasStatus_t cublasLtDestroy(cublasLtHandle_t handle) {
  delete reinterpret_cast<int*>(handle);
  return CUBLAS_STATUS_SUCCESS;
}

cublasStatus_t cublasLtMatmulDescCreate(cublasLtMatmulDesc_t* operation, cublasComputeType_t,
                                        cudaDataType_t) {
  *operation = reinterpret_cast<cublasLtMatmulDesc_t>(new Operation);
  return CUBLAS_STATUS_SUCCESS;
}

cublasStatus_t cublasLtMatmulDescDestroy(cublasLtMatmulDesc_t operation) {
  delete &as<Operation>(operation);
  return CUBLAS_STATUS_SUCCESS;
}

cublasStatus_t cublasLtMatmulDescSetAttribute(cublasLtMatmulDesc_t handle,
                                              cublasLtMatmulDescAttributes_t name,
                                              const void* value, std::size_t bytes) {
  auto& operation = as<Operation>(handle);
  switch (name) {
    case CUBLASLT_MATMUL_DESC_TRANSA:
      std::memcpy(&operation.transpose_a, value, bytes);
      break;
    case CUBLASLT_MATMUL_DESC_TRANSB:
      std::memcpy(&operation.transpose_b, value, bytes);
      break;
    case CUBLASLT_MATMUL_DESC_EPILOGUE:
      std::memcpy(&operation.epilogue, value, bytes);
      break;
    case CUBLASLT_MATMUL_DESC_BIAS_POINTER:
      std::memcpy(&operation.bias, value, bytes);
      break;
    default:
      return CUBLAS_STATUS_INVALID_VALUE;
  }
  return CUBLAS_STATUS_SUCCESS;
}

cublasStatus_t cublasLtMatrixLayoutCreate(cublasLtMatrixLayout_t* layout, cudaDataType type,
                                          std::uint64_t rows, std::uint64_t columns,
                                          std::int64_t leading) {
  *layout = reinterpret_cast<cublasLtMatrixLayout_t>(
      new Layout{dtype_of(type), static_cast<std::int64_t>(rows),
                 static_cast<std::int64_t>(columns), leading});
  return CUBLAS_STATUS_SUCCESS;
}

cublasStatus_t cublasLtMatrixLayoutDestroy(cublasLtMatrixLayout_t layout) {
  delete &as<Layout>(layout);
  return CUBLAS_STATUS_SUCCESS;
}

cublasStatus_t cublasLtMatmulPreferenceCreate(cublasLtMatmulPreference_t* preference) {
  *preference = reinterpret_cast<cublasLtMatmulPreference_t>(new int);
  return CUBLAS_STATUS_SUCCESS;
}

cublasStatus_t cublasLtMatmulPreferenceDestroy(cublasLtMatmulPreference_t preference) {
  delete reinterpret_cast<int*>(preference);
  return CUBLAS_STATUS_SUCCESS;
}

cublasStatus_t cublasLtMatmulPreferenceSetAttribute(cublasLtMatmulPreference_t,
                                                    cublasLtMatmulPreferenceAttributes_t,
                                                    const void*, std::size_t) {
  return CUBLAS_STATUS_SUCCESS;
}

cublasStatus_t cublasLtMatmulAlgoGetHeuristic(cublasLtHandle_t, cublasLtMatmulDesc_t operation,
                                              cublasLtMatrixLayout_t a, cublasLtMatrixLayout_t b,
                                              cublasLtMatrixLayout_t, cublasLtMatrixLayout_t d,
                                              cublasLtMatmulPreference_t, int wanted,
                                              cublasLtMatmulHeuristicResult_t results[],
                                              int* found) {
  if (as<Layout>(a).rows < 1 || as<Layout>(b).rows < 1 || as<Layout>(d).rows < 1) {
    return CUBLAS_STATUS_INVALID_VALUE;
  }
  const cublasLtEpilogue_t epilogue = as<Operation>(operation).epilogue;
  const ringlet::DType factors = as<Layout>(a).dtype, result = as<Layout>(d).dtype;
  const bool f32 = result == ringlet::DType::f32;
  const bool narrow_bias = !f32 && (has_bias(epilogue) || epilogue == CUBLASLT_EPILOGUE_BGRADB);
  if (as<Layout>(b).dtype != factors || (!f32 && result != factors) || narrow_bias) {
    *found = 0;
    return CUBLAS_STATUS_NOT_SUPPORTED;
  }
  if (epilogue == CUBLASLT_EPILOGUE_BGRADB && says(kOfBgradb, "none")) {
    *found = 0;
    return CUBLAS_STATUS_NOT_SUPPORTED;
  }
  *found = wanted < 2 ? wanted : 2;
  for (int i = 0; i < *found; ++i) {
    results[i] = {};
    results[i].algo.data[0] = static_cast<std::uint64_t>(i);
    results[i].workspaceSize = static_cast<std::size_t>(i) * kScratchBytes;
    results[i].state = CUBLAS_STATUS_SUCCESS;
  }
  return CUBLAS_STATUS_SUCCESS;
}

cublasStatus_t cublasLtMatmul(cublasLtHandle_t, cublasLtMatmulDesc_t operation, const void* alpha,
                              const void* a, cublasLtMatrixLayout_t a_layout, const void* b,
                              cublasLtMatrixLayout_t b_layout, const void* beta, const void*,
                              cublasLtMatrixLayout_t, void* d, cublasLtMatrixLayout_t d_layout,
                              const cublasLtMatmulAlgo_t* algorithm, void* scratch,
                              std::size_t scratch_bytes, cudaStream_t stream) {
  const bool second = algorithm->data[0] == 1;
  if (second && (scratch == nullptr || scratch_bytes < kScratchBytes)) {
    return CUBLAS_STATUS_INVALID_VALUE;
  }
  const Product product{as<Operation>(operation),
                        a,
                        b,
                        d,
                        as<Layout>(a_layout),
                        as<Layout>(b_layout),
                        as<Layout>(d_layout),
                        *static_cast<const float*>(alpha),
                        *static_cast<const float*>(beta),
                        second};
  ringlet::stand_in::enqueue(stream, "matmul", [product, scratch, second] {
    if (second) std::memset(scratch, 0xFF, kScratchBytes);
    product.run();
  });
  return CUBLAS_STATUS_SUCCESS;
}

}  // extern "C"
