#include "comm/transport/nccl/nccl_library.h"

#include <type_traits>

#include "base/shared_library.h"

namespace ringlet::comm {

NcclFunctions open_nccl_library(const char* file) {
  const SharedLibrary library(file, "install NCCL 2, or use --transport local");
  NcclFunctions functions{};
#define RINGLET_FIND(name) \
  functions.name = library.function<std::remove_pointer_t<decltype(functions.name)>>(#name);
  RINGLET_NCCL_FUNCTIONS(RINGLET_FIND)
#undef RINGLET_FIND
#define RINGLET_FIND(name) \
  functions.name = library.find<std::remove_pointer_t<decltype(functions.name)>>(#name);
  RINGLET_FIND(ncclMemAlloc)
  RINGLET_FIND(ncclMemFree)
  RINGLET_FIND(ncclCommRegister)
  RINGLET_FIND(ncclCommDeregister)
#undef RINGLET_FIND
  return functions;
}

const NcclFunctions& nccl_library() {
  static const NcclFunctions functions = open_nccl_library("libnccl.so.2");
  return functions;
}

std::string explain(const NcclFunctions& nccl, ncclResult_t result, ncclComm_t communicator) {
  std::string text = nccl.ncclGetErrorString(result);
  const char* last = nccl.ncclGetLastError(communicator);
  if (last != nullptr && *last != '\0') text += ": " + std::string(last);
  while (!text.empty() && text.back() == '\n') text.pop_back();
  return text;
}

}  // namespace ringlet::comm
