// CudaLibraries: the handles and caches of cuBLASLt and cuDNN that belong to one stream.
#pragma once

#include <string>

namespace ringlet {

class CudaStream;

class CudaLibraries {
 public:
  explicit CudaLibraries(CudaStream& stream);
  ~CudaLibraries();
  CudaLibraries(const CudaLibraries&) = delete;
  CudaLibraries& operator=(const CudaLibraries&) = delete;

 private:
  CudaStream& stream_;
};

/// Versions of the libraries found at run time, "13.0.2"; empty where they cannot be opened.
std::string cublas_version();
std::string cudnn_version();

}  // namespace ringlet
