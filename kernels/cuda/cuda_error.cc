#include "kernels/cuda/cuda_error.h"

#include <string>

namespace ringlet {

void check_cuda(cudaError_t result, const char* call, At at) {
  if (result == cudaSuccess) return;
  // Whoever catches this may go on. CUDA would tell of it once more at the next launch.
  cudaGetLastError();
  int device = 0;
  const bool known = cudaGetDevice(&device) == cudaSuccess;
  const std::string where = known ? " on cuda:" + std::to_string(device) : std::string();
  if (result == cudaErrorMemoryAllocation) {
    throw OutOfMemoryError(
        std::string(call) + where + ": the GPU has not enough memory left; use a smaller batch",
        at);
  }
  throw DeviceError(std::string(call) + " failed" + where + ": " + cudaGetErrorString(result) +
                        " (" + cudaGetErrorName(result) +
                        "); nvidia-smi and the system's log (dmesg, NVRM: Xid) may say why",
                    at);
}

}  // namespace ringlet
