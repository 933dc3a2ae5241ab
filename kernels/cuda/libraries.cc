#include "kernels/cuda/libraries.h"

#include "kernels/cuda/cublas_lt.h"
#include "kernels/cuda/cublas_matmuls.h"
#include "kernels/cuda/cuda_device.h"
#include "kernels/cuda/cudnn.h"
#include "kernels/cuda/cudnn_convolutions.h"

namespace ringlet {

namespace {

/// 130002 is "13.0.2"; cuDNN counts in the same way since version 9.
std::string version_text(std::size_t version) {
  return std::to_string(version / 10000) + "." + std::to_string(version % 10000 / 100) + "." +
         std::to_string(version % 100);
}

}  // namespace

CudaLibraries::CudaLibraries(CudaStream& stream) : stream_(stream) {}
CudaLibraries::~CudaLibraries() = default;

CublasMatmuls& CudaLibraries::matmuls() {
  if (!matmuls_) matmuls_ = std::make_unique<CublasMatmuls>(stream_);
  return *matmuls_;
}

CudnnConvolutions& CudaLibraries::convolutions() {
  if (!convolutions_) convolutions_ = std::make_unique<CudnnConvolutions>(stream_);
  return *convolutions_;
}

void CudaLibraries::follow_stream() {
  if (convolutions_) convolutions_->follow_stream();
}

std::string cublas_version() {
  try {
    return version_text(cublas_lt().cublasLtGetVersion());
  } catch (const DeviceError&) {
    return {};
  }
}

std::string cudnn_version() {
  try {
    return version_text(cudnn().cudnnGetVersion());
  } catch (const DeviceError&) {
    return {};
  }
}

}  // namespace ringlet
