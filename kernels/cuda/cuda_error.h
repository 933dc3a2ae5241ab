// Turns the result codes of the CUDA run time into DeviceError.
#pragma once

#include <cuda_runtime_api.h>

#include "base/error.h"

namespace ringlet {

/// Throws DeviceError unless `result` is cudaSuccess: "cudaMemcpyAsync failed on cuda:0: an illegal
/// memory access was encountered (cudaErrorIllegalAddress)". OutOfMemoryError where memory ran out.
/// `call` names the call. CUDA reports a kernel's failure with whatever call comes next.
void check_cuda(cudaError_t result, const char* call, At at = At::current());

/// To be called after a launch: throws unless the kernel could be launched.
inline void check_launch(const char* kernel, At at = At::current()) {
  check_cuda(cudaGetLastError(), kernel, at);
}

}  // namespace ringlet
