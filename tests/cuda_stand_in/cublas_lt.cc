// cuBLASLt as far as Ringlet calls it: column-major products of f32, bf16 or f16, with a bias and
// ReLU behind, or with the sums of op(b) over k (BGRADB). The result is of the factors' type or
// f32. A bias and its gradient are of the result's type, which has to be f32 here.
// RINGLET_STAND_IN_BGRADB=none: that is not supported; loses-nan: it passes over NaN.
// Two algorithms are proposed: the second one wants scratch memory and adds in another order.
//
// It refuses sizes, types and attributes that do not fit together. An algorithm holds for addresses
// that are multiples of what the preference said, a bias at 16 bytes and scratch memory at 256. At
// any other it fails as a kernel does that touches memory across its words: for good.
#include <cublasLt.h>

#include <algorithm>
#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <string>
#include <vector>

#include "tests/cuda_stand_in/faults.h"
#include "tests/cuda_stand_in/floats.h"
#include "tests/cuda_stand_in/stand_in.h"

namespace {

struct Operation {
  cublasComputeType_t compute = CUBLAS_COMPUTE_32F;
  cudaDataType_t scale = CUDA_R_32F;
  cublasOperation_t transpose_a = CUBLAS_OP_N, transpose_b = CUBLAS_OP_N;
  cublasLtEpilogue_t epilogue = CUBLASLT_EPILOGUE_DEFAULT;
  float* bias = nullptr;  ///< read, or written by BGRADB
};

struct Layout {
  ringlet::DType dtype;
  std::int64_t rows, columns, leading;

  bool is_valid() const { return rows > 0 && columns > 0 && leading >= rows; }
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

struct Preference {
  std::uint64_t workspace = 0;
  std::uint32_t a = 256, b = 256, c = 256, d = 256;  ///< bytes that addresses are multiples of
  std::uint32_t reductions = CUBLASLT_REDUCTION_SCHEME_MASK;
};

/// What an algorithm says of itself, in its opaque words.
struct Algorithm {
  std::uint32_t index = 0;                   ///< of the proposals
  std::uint32_t a = 0, b = 0, c = 0, d = 0;  ///< as the preference has them
};
static_assert(sizeof(Algorithm) <= sizeof(cublasLtMatmulAlgo_t));

template <class T>
cublasStatus_t assign(T& attribute, const void* value, std::size_t bytes) {
  if (value == nullptr || bytes != sizeof attribute) return CUBLAS_STATUS_INVALID_VALUE;
  std::memcpy(&attribute, value, bytes);
  return CUBLAS_STATUS_SUCCESS;
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

/// Whether op(a) op(b) is d.
bool fits(const Operation& operation, const Layout& a, const Layout& b, const Layout& d) {
  if (!a.is_valid() || !b.is_valid() || !d.is_valid()) return false;
  const bool plain_a = operation.transpose_a == CUBLAS_OP_N;
  const bool plain_b = operation.transpose_b == CUBLAS_OP_N;
  return (plain_a ? a.rows : a.columns) == d.rows && (plain_b ? b.columns : b.rows) == d.columns &&
         (plain_a ? a.columns : a.rows) == (plain_b ? b.rows : b.columns);
}

/// Whether there is a product of these types: sums are f32, and only f32 is rounded to TF32.
bool is_supported(const Operation& operation, const Layout& a, const Layout& b, const Layout& d) {
  const bool f32_result = d.dtype == ringlet::DType::f32;
  const bool rounds = operation.compute == CUBLAS_COMPUTE_32F_FAST_TF32;
  if (operation.scale != CUDA_R_32F || (!rounds && operation.compute != CUBLAS_COMPUTE_32F)) {
    return false;
  }
  if (rounds && a.dtype != ringlet::DType::f32) return false;
  if (b.dtype != a.dtype || (!f32_result && d.dtype != a.dtype)) return false;
  const bool sums = operation.epilogue == CUBLASLT_EPILOGUE_BGRADB;
  if (!f32_result && (has_bias(operation.epilogue) || sums)) return false;
  return !(sums && says(kOfBgradb, "none"));
}

/// A launch that the device would not survive.
cublasStatus_t fail_for_good(const char* what) {
  ringlet::stand_in::break_devices(std::string("cuBLASLt: ") + what);
  return CUBLAS_STATUS_EXECUTION_FAILED;
}

bool is_aligned(const void* address, std::uint32_t bytes) {
  return reinterpret_cast<std::uintptr_t>(address) % bytes == 0;
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
    std::vector<float> a = a_layout.widened(a_data), b = b_layout.widened(b_data);
    if (operation.epilogue == CUBLASLT_EPILOGUE_BGRADB) sum_columns(b.data());
    if (operation.compute == CUBLAS_COMPUTE_32F_FAST_TF32) {
      std::ranges::transform(a, a.begin(), ringlet::stand_in::to_tf32);
      std::ranges::transform(b, b.begin(), ringlet::stand_in::to_tf32);
    }
    std::vector<float> d(d_layout.count());
    if (beta != 0) d = d_layout.widened(d_data);
    multiply(a.data(), b.data(), d.data());
    ringlet::stand_in::round_floats(d_layout.dtype, d.data(), d.size(), d_data);
  }

 private:
  std::int64_t inner() const {
    return operation.transpose_a == CUBLAS_OP_N ? a_layout.columns : a_layout.rows;
  }
  float b_at(const float* b, std::int64_t k, std::int64_t j) const {
    return operation.transpose_b == CUBLAS_OP_N ? b[k + j * b_layout.leading]
                                                : b[j + k * b_layout.leading];
  }

  void multiply(const float* a, const float* b, float* d) const {
    const bool forgets = ringlet::stand_in::has_fault("fused");
    const std::int64_t count = inner();
    const auto a_at = [&](std::int64_t i, std::int64_t k) {
      return operation.transpose_a == CUBLAS_OP_N ? a[i + k * a_layout.leading]
                                                  : a[k + i * a_layout.leading];
    };
    for (std::int64_t j = 0; j < d_layout.columns; ++j) {
      for (std::int64_t i = 0; i < d_layout.rows; ++i) {
        const float sum = ringlet::stand_in::sum_in_parts(count, [&](std::int64_t step) {
          const std::int64_t k = backwards ? count - 1 - step : step;
          return a_at(i, k) * b_at(b, k, j);
        });
        float& value = d[i + j * d_layout.leading];
        value = alpha * sum + (beta == 0 ? 0 : beta * value);
        if (has_bias(operation.epilogue) && !forgets) value += operation.bias[i];
        if (has_relu(operation.epilogue)) value = ringlet::stand_in::relu(value);
      }
    }
  }

  /// bias[j] = the sum of op(b)[k, j]
  void sum_columns(const float* b) const {
    const std::int64_t count = ringlet::stand_in::has_fault("fused") ? 0 : inner();
    for (std::int64_t j = 0; j < d_layout.columns; ++j) {
      operation.bias[j] = ringlet::stand_in::sum_in_parts(count, [&](std::int64_t step) {
        const float value = b_at(b, backwards ? count - 1 - step : step, j);
        return says(kOfBgradb, "loses-nan") && value != value ? 0 : value;
      });
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

cublasStatus_t cublasLtMatmulDescCreate(cublasLtMatmulDesc_t* operation,
                                        cublasComputeType_t compute, cudaDataType_t scale) {
  *operation =
      reinterpret_cast<cublasLtMatmulDesc_t>(new Operation{.compute = compute, .scale = scale});
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
      return assign(operation.transpose_a, value, bytes);
    case CUBLASLT_MATMUL_DESC_TRANSB:
      return assign(operation.transpose_b, value, bytes);
    case CUBLASLT_MATMUL_DESC_EPILOGUE:
      return assign(operation.epilogue, value, bytes);
    case CUBLASLT_MATMUL_DESC_BIAS_POINTER:
      return assign(operation.bias, value, bytes);
    default:
      return CUBLAS_STATUS_INVALID_VALUE;
  }
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
  *preference = reinterpret_cast<cublasLtMatmulPreference_t>(new Preference);
  return CUBLAS_STATUS_SUCCESS;
}

cublasStatus_t cublasLtMatmulPreferenceDestroy(cublasLtMatmulPreference_t preference) {
  delete &as<Preference>(preference);
  return CUBLAS_STATUS_SUCCESS;
}

cublasStatus_t cublasLtMatmulPreferenceSetAttribute(cublasLtMatmulPreference_t handle,
                                                    cublasLtMatmulPreferenceAttributes_t name,
                                                    const void* value, std::size_t bytes) {
  auto& preference = as<Preference>(handle);
  switch (name) {
    case CUBLASLT_MATMUL_PREF_MAX_WORKSPACE_BYTES:
      return assign(preference.workspace, value, bytes);
    case CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_A_BYTES:
      return assign(preference.a, value, bytes);
    case CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_B_BYTES:
      return assign(preference.b, value, bytes);
    case CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_C_BYTES:
      return assign(preference.c, value, bytes);
    case CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_D_BYTES:
      return assign(preference.d, value, bytes);
    case CUBLASLT_MATMUL_PREF_REDUCTION_SCHEME_MASK:
      return assign(preference.reductions, value, bytes);
    default:
      return CUBLAS_STATUS_INVALID_VALUE;
  }
}

cublasStatus_t cublasLtMatmulAlgoGetHeuristic(cublasLtHandle_t, cublasLtMatmulDesc_t operation,
                                              cublasLtMatrixLayout_t a, cublasLtMatrixLayout_t b,
                                              cublasLtMatrixLayout_t c, cublasLtMatrixLayout_t d,
                                              cublasLtMatmulPreference_t preference, int wanted,
                                              cublasLtMatmulHeuristicResult_t results[],
                                              int* found) {
  *found = 0;
  const auto &a_layout = as<Layout>(a), &b_layout = as<Layout>(b), &d_layout = as<Layout>(d);
  const auto& described = as<Operation>(operation);
  if (c != d || !fits(described, a_layout, b_layout, d_layout)) return CUBLAS_STATUS_INVALID_VALUE;
  if (!is_supported(described, a_layout, b_layout, d_layout)) return CUBLAS_STATUS_NOT_SUPPORTED;
  const auto& limits = as<Preference>(preference);
  const int count = limits.workspace < kScratchBytes ? 1 : 2;
  *found = std::min(wanted, count);
  for (int i = 0; i < *found; ++i) {
    const Algorithm algorithm{static_cast<std::uint32_t>(i), limits.a, limits.b, limits.c,
                              limits.d};
    results[i] = {};
    std::memcpy(&results[i].algo, &algorithm, sizeof algorithm);
    results[i].workspaceSize = static_cast<std::size_t>(i) * kScratchBytes;
    results[i].state = CUBLAS_STATUS_SUCCESS;
  }
  return *found > 0 ? CUBLAS_STATUS_SUCCESS : CUBLAS_STATUS_NOT_SUPPORTED;
}

cublasStatus_t cublasLtMatmul(cublasLtHandle_t, cublasLtMatmulDesc_t operation, const void* alpha,
                              const void* a, cublasLtMatrixLayout_t a_layout, const void* b,
                              cublasLtMatrixLayout_t b_layout, const void* beta, const void* c,
                              cublasLtMatrixLayout_t, void* d, cublasLtMatrixLayout_t d_layout,
                              const cublasLtMatmulAlgo_t* opaque, void* scratch,
                              std::size_t scratch_bytes, cudaStream_t stream) {
  Algorithm algorithm;
  std::memcpy(static_cast<void*>(&algorithm), opaque, sizeof algorithm);
  const bool second = algorithm.index == 1;
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
  const Operation& described = product.operation;
  if (!fits(described, product.a_layout, product.b_layout, product.d_layout)) {
    return CUBLAS_STATUS_INVALID_VALUE;
  }
  if (!is_aligned(a, algorithm.a) || !is_aligned(b, algorithm.b) || !is_aligned(c, algorithm.c) ||
      !is_aligned(d, algorithm.d)) {
    return fail_for_good("a matrix is not aligned as the preference said");
  }
  if (!is_aligned(scratch, 256)) return fail_for_good("scratch memory is not aligned to 256 bytes");
  const bool has_vector = described.epilogue != CUBLASLT_EPILOGUE_DEFAULT &&
                          described.epilogue != CUBLASLT_EPILOGUE_RELU;
  if (has_vector && described.bias == nullptr) return CUBLAS_STATUS_INVALID_VALUE;
  if (has_vector && !is_aligned(described.bias, 16)) {
    return fail_for_good("a bias, or its gradient, is not aligned to 16 bytes");
  }
  ringlet::stand_in::enqueue(stream, "matmul", [product, scratch, second] {
    if (second) std::memset(scratch, 0xFF, kScratchBytes);
    product.run();
  });
  return CUBLAS_STATUS_SUCCESS;
}

}  // extern "C"
