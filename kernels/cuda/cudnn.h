// cuDNN's functions, opened when they are first needed, and cuDNN's errors.
//
// Only its graph API is used: the older calls for convolutions are deprecated.
#pragma once

#include <cudnn_graph.h>

#include <string>

#include "base/error.h"

namespace ringlet {

/// Every function that Ringlet calls, once.
#define RINGLET_CUDNN_FUNCTIONS(F) \
  F(cudnnGetVersion)               \
  F(cudnnGetErrorString)           \
  F(cudnnGetLastErrorString)       \
  F(cudnnCreate)                   \
  F(cudnnDestroy)                  \
  F(cudnnSetStream)                \
  F(cudnnBackendCreateDescriptor)  \
  F(cudnnBackendDestroyDescriptor) \
  F(cudnnBackendSetAttribute)      \
  F(cudnnBackendGetAttribute)      \
  F(cudnnBackendFinalize)          \
  F(cudnnBackendExecute)

struct CudnnFunctions {
#define RINGLET_DECLARE(name) decltype(&::name) name;  // NOLINT: a member has no parentheses
  RINGLET_CUDNN_FUNCTIONS(RINGLET_DECLARE)
#undef RINGLET_DECLARE
};

/// Opens the library at the first call. Throws DeviceError with the remedy where it is not there or
/// has not all of the functions.
const CudnnFunctions& cudnn();

/// "CUDNN_STATUS_BAD_PARAM (what the library says about the last failure of this thread)"
std::string explain(cudnnStatus_t status);

/// Throws DeviceError ("cudnnCreate failed: ...") unless `status` is CUDNN_STATUS_SUCCESS.
void check_cudnn(cudnnStatus_t status, const char* call, At at = At::current());

}  // namespace ringlet
