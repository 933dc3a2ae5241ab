#include "kernels/cuda/cublas_lt.h"

#include <string>
#include <type_traits>

#include "base/shared_library.h"
#include "kernels/cuda/libraries.h"

namespace ringlet {

namespace {

CublasLtFunctions open_cublas_lt() {
  const std::string file = "libcublasLt.so." + std::to_string(CUBLAS_VER_MAJOR);
  const SharedLibrary library(file.c_str(),
                              "install the CUDA toolkit's libraries, or use --device cpu");
  CublasLtFunctions functions{};
#define RINGLET_FIND(name) \
  functions.name = library.function<std::remove_pointer_t<decltype(functions.name)>>(#name);
  RINGLET_CUBLAS_LT_FUNCTIONS(RINGLET_FIND)
#undef RINGLET_FIND
  return functions;
}

}  // namespace

const CublasLtFunctions& cublas_lt() {
  static const CublasLtFunctions functions = open_cublas_lt();
  return functions;
}

std::string explain(cublasStatus_t status) {
  return std::string(cublas_lt().cublasLtGetStatusName(status)) + " (" +
         cublas_lt().cublasLtGetStatusString(status) + ")";
}

void check_cublas(cublasStatus_t status, const char* call, At at) {
  if (status == CUBLAS_STATUS_SUCCESS) return;
  throw DeviceError(std::string(call) + " failed: " + explain(status) + kLookAtVersions, at);
}

}  // namespace ringlet
