// NCCL's functions, opened when they are first needed, and NCCL's errors.
#pragma once

#include <nccl.h>

#include <string>

namespace ringlet::comm {

/// Every function that Ringlet calls, once.
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
};

/// Opens the library at the first call. Throws DeviceError with the remedy where it is not there or
/// has not all of the functions.
const NcclFunctions& nccl();

/// "unhandled system error: Call to bind failed: ...": NCCL's name for `result`, and what it said
/// last of `communicator` (null: of none).
std::string explain(ncclResult_t result, ncclComm_t communicator);

}  // namespace ringlet::comm
