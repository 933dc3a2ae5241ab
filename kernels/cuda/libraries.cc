#include "kernels/cuda/libraries.h"

#include "kernels/cuda/cuda_device.h"

namespace ringlet {

CudaLibraries::CudaLibraries(CudaStream& stream) : stream_(stream) {}
CudaLibraries::~CudaLibraries() = default;

std::string cublas_version() { return {}; }
std::string cudnn_version() { return {}; }

}  // namespace ringlet
