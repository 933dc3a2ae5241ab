// NCCL's functions, opened when they are first needed, and NCCL's errors.
#pragma once

#include <nccl.h>

#include <cstddef>
#include <string>

namespace ringlet::comm {

/// Every function that Ringlet calls and each NCCL 2 has, once.
#define RINGLET_NCCL_FUNCTIONS(F) \
  F(ncclGetVersion)               \
  F(ncclGetUniqueId)              \
  F(ncclGetErrorString)           \
  F(ncclGetLastError)             \
  F(ncclCommInitRankConfig)       \
  F(ncclCommGetAsyncError)        \
  F(ncclCommFinalize)             \
  F(ncclCommDestroy)              \
  F(ncclCommAbort)                \
  F(ncclGroupStart)               \
  F(ncclGroupEnd)                 \
  F(ncclSend)                     \
  F(ncclRecv)                     \
  F(ncclAllReduce)                \
  F(ncclReduce)                   \
  F(ncclBroadcast)

struct NcclFunctions {
#define RINGLET_DECLARE(name) decltype(&::name) name;  // NOLINT: a member has no parentheses
  RINGLET_NCCL_FUNCTIONS(RINGLET_DECLARE)
#undef RINGLET_DECLARE

  // Since NCCL 2.19; null in an older library, whose header need not declare them either.
  ncclResult_t (*ncclMemAlloc)(void** address, std::size_t bytes);
  ncclResult_t (*ncclMemFree)(void* address);
  ncclResult_t (*ncclCommRegister)(ncclComm_t, void* address, std::size_t bytes, void** handle);
  ncclResult_t (*ncclCommDeregister)(ncclComm_t, void* handle);
  /// Whether memory can be allocated and registered.
  bool have_memory() const {
    return ncclMemAlloc != nullptr && ncclMemFree != nullptr && ncclCommRegister != nullptr &&
           ncclCommDeregister != nullptr;
  }
};

/// The functions of the library `file`. Throws DeviceError with the remedy where it is not there or
/// has not all that are in RINGLET_NCCL_FUNCTIONS.
NcclFunctions open_nccl_library(const char* file);

/// Those of libnccl.so.2, opened at the first call.
const NcclFunctions& nccl_library();

/// "unhandled system error: Call to bind failed: ...": NCCL's name for `result`, and what it said
/// last of `communicator` (null: of none).
std::string explain(const NcclFunctions& nccl, ncclResult_t result, ncclComm_t communicator);

}  // namespace ringlet::comm
