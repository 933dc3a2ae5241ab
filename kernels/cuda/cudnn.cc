#include "kernels/cuda/cudnn.h"

#include <array>
#include <type_traits>

#include "base/shared_library.h"
#include "kernels/cuda/libraries.h"

namespace ringlet {

namespace {

CudnnFunctions open_cudnn() {
  const std::string file = "libcudnn.so." + std::to_string(CUDNN_MAJOR);
  const SharedLibrary library(file.c_str(), "install cuDNN 9 for this CUDA, or use --device cpu");
  CudnnFunctions functions{};
#define RINGLET_FIND(name) \
  functions.name = library.function<std::remove_pointer_t<decltype(functions.name)>>(#name);
  RINGLET_CUDNN_FUNCTIONS(RINGLET_FIND)
#undef RINGLET_FIND
  return functions;
}

}  // namespace

const CudnnFunctions& cudnn() {
  static const CudnnFunctions functions = open_cudnn();
  return functions;
}

std::string explain(cudnnStatus_t status) {
  std::array<char, 512> last{};
  cudnn().cudnnGetLastErrorString(last.data(), last.size());
  std::string text = cudnn().cudnnGetErrorString(status);
  if (last[0] != '\0') text += std::string(" (") + last.data() + ")";
  return text;
}

void check_cudnn(cudnnStatus_t status, const char* call, At at) {
  if (status == CUDNN_STATUS_SUCCESS) return;
  throw DeviceError(std::string(call) + " failed: " + explain(status) + kLookAtVersions, at);
}

}  // namespace ringlet
