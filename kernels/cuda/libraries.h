// CudaLibraries: what the libraries cuBLASLt and cuDNN keep for one stream: handles, and plans that
// were made once for each shape.
#pragma once

#include <memory>
#include <string>

namespace ringlet {

/// The remedy where one of them fails: most often it is a version that the driver cannot serve.
inline constexpr const char* kLookAtVersions =
    "; do its version and the driver's fit together ('ringlet devices' names them)?";

class CublasMatmuls;
class CudaStream;
class CudnnConvolutions;

class CudaLibraries {
 public:
  explicit CudaLibraries(CudaStream& stream);
  ~CudaLibraries();
  CudaLibraries(const CudaLibraries&) = delete;
  CudaLibraries& operator=(const CudaLibraries&) = delete;

  /// Each opens its library at the first call, and throws DeviceError where it cannot be had.
  CublasMatmuls& matmuls();
  CudnnConvolutions& convolutions();

  /// The stream's handle() is another one from here on.
  void follow_stream();

 private:
  CudaStream& stream_;
  std::unique_ptr<CublasMatmuls> matmuls_;
  std::unique_ptr<CudnnConvolutions> convolutions_;
};

/// Versions of the libraries found at run time, "13.0.2"; empty where they cannot be opened.
std::string cublas_version();
std::string cudnn_version();

}  // namespace ringlet
