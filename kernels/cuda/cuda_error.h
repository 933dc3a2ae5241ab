// Turns the result codes of the CUDA run time into DeviceError.
#pragma once

#include <cuda_runtime_api.h>

#include "kernels/error.h"

namespace ringlet {

/// Throws DeviceError ("cudaMemcpyAsync failed on cuda:0: an illegal memory access was encountered
/// (cudaErrorIllegalAddress)") unless `result` is cudaSuccess; OutOfMemoryError where it is that.
/// `call` names what was called. CUDA reports failures of kernels with whatever call comes next.
void check_cuda(cudaError_t result, const char* call, At at = At::current());

/// After a launch: whether it could be launched at all.
inline void check_launch(const char* kernel, At at = At::current()) {
  check_cuda(cudaGetLastError(), kernel, at);
}

}  // namespace ringlet
