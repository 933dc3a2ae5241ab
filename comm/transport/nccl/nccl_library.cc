#include "comm/transport/nccl/nccl_library.h"

#include <type_traits>

#include "kernels/shared_library.h"

namespace ringlet::comm {

namespace {

NcclFunctions open_library() {
  const SharedLibrary library("libnccl.so.2", "install NCCL 2, or use --transport local");
  NcclFunctions functions{};
#define RINGLET_FIND(name) \
  functions.name = library.function<std::remove_pointer_t<decltype(functions.name)>>(#name);
  RINGLET_NCCL_FUNCTIONS(RINGLET_FIND)
#undef RINGLET_FIND
  return functions;
}

}  // namespace

const NcclFunctions& nccl() {
  static const NcclFunctions functions = open_library();
  return functions;
}

std::string explain(ncclResult_t result, ncclComm_t communicator) {
  std::string text = nccl().ncclGetErrorString(result);
  const char* last = nccl().ncclGetLastError(communicator);
  if (last != nullptr && *last != '\0') text += ": " + std::string(last);
  while (!text.empty() && text.back() == '\n') text.pop_back();
  return text;
}

}  // namespace ringlet::comm
