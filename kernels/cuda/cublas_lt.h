// cuBLASLt's functions, opened when they are first needed, and cuBLASLt's errors.
#pragma once

#include <cublasLt.h>

#include "base/error.h"

namespace ringlet {

/// Every function that Ringlet calls, once.
#define RINGLET_CUBLAS_LT_FUNCTIONS(F)    \
  F(cublasLtGetVersion)                   \
  F(cublasLtGetStatusName)                \
  F(cublasLtGetStatusString)              \
  F(cublasLtCreate)                       \
  F(cublasLtDestroy)                      \
  F(cublasLtMatmulDescCreate)             \
  F(cublasLtMatmulDescDestroy)            \
  F(cublasLtMatmulDescSetAttribute)       \
  F(cublasLtMatrixLayoutCreate)           \
  F(cublasLtMatrixLayoutDestroy)          \
  F(cublasLtMatmulPreferenceCreate)       \
  F(cublasLtMatmulPreferenceDestroy)      \
  F(cublasLtMatmulPreferenceSetAttribute) \
  F(cublasLtMatmulAlgoGetHeuristic)       \
  F(cublasLtMatmul)

struct CublasLtFunctions {
#define RINGLET_DECLARE(name) decltype(&::name) name;  // NOLINT: a member has no parentheses
  RINGLET_CUBLAS_LT_FUNCTIONS(RINGLET_DECLARE)
#undef RINGLET_DECLARE
};

/// Opens the library at the first call. Throws DeviceError with the remedy where it is not there or
/// has not all of the functions.
const CublasLtFunctions& cublas_lt();

/// "CUBLAS_STATUS_NOT_SUPPORTED (the functionality requested is not supported)"
std::string explain(cublasStatus_t status);

/// Throws DeviceError ("cublasLtCreate failed: ...") unless `status` is CUBLAS_STATUS_SUCCESS.
void check_cublas(cublasStatus_t status, const char* call, At at = At::current());

}  // namespace ringlet
