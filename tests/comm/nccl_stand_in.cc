#include "tests/comm/nccl_stand_in.h"

#include <nccl.h>

#include <cstdint>
#include <cstring>

#include "tests/comm/nccl_stand_in_library.h"

namespace {

using ringlet::comm::NcclStandIn;
using ringlet::comm::stand_in::Library;
using ringlet::comm::stand_in::Operation;

std::size_t size_of(ncclDataType_t type) {
  switch (type) {
    case ncclUint8:
      return 1;
    case ncclFloat16:
    case ncclBfloat16:
      return 2;
    default:
      return 4;
  }
}

Library& library() {
  static Library made;
  return made;
}

}  // namespace

extern "C" {

NcclStandIn* ringlet_nccl_stand_in() { return &library(); }

ncclResult_t ncclGetVersion(int* version) {
  *version = NCCL_VERSION_CODE;
  return ncclSuccess;
}

ncclResult_t ncclGetUniqueId(ncclUniqueId* id) {
  static std::uint64_t next = 0;
  ++next;
  std::memset(id, 0, sizeof *id);
  std::memcpy(id->internal, &next, sizeof next);
  return ncclSuccess;
}

const char* ncclGetErrorString(ncclResult_t result) {
  return result == ncclRemoteError ? "remote process exited" : "internal error";
}

const char* ncclGetLastError(ncclComm_t) { return "the stand-in was told so\n"; }

ncclResult_t ncclCommInitRankConfig(ncclComm_t* comm, int size, ncclUniqueId id, int rank,
                                    ncclConfig_t*) {
  return library().initialise(comm, size, id, rank);
}
ncclResult_t ncclCommGetAsyncError(ncclComm_t comm, ncclResult_t* state) {
  return library().ask(comm, state);
}
ncclResult_t ncclCommFinalize(ncclComm_t comm) { return library().finalise(comm); }
ncclResult_t ncclCommDestroy(ncclComm_t comm) { return library().destroy(comm); }
ncclResult_t ncclCommAbort(ncclComm_t comm) { return library().abort(comm); }
ncclResult_t ncclGroupStart() { return Library::begin_group(); }
ncclResult_t ncclGroupEnd() { return library().end_group(); }

ncclResult_t ncclSend(const void* data, std::size_t count, ncclDataType_t type, int peer,
                      ncclComm_t comm, cudaStream_t stream) {
  return library().add(comm, stream, "ncclSend", data,
                       {Operation::send, data, nullptr, count * size_of(type), peer, ncclSum});
}
ncclResult_t ncclRecv(void* data, std::size_t count, ncclDataType_t type, int peer, ncclComm_t comm,
                      cudaStream_t stream) {
  return library().add(comm, stream, "ncclRecv", data,
                       {Operation::receive, nullptr, data, count * size_of(type), peer, ncclSum});
}
ncclResult_t ncclAllReduce(const void* in, void* out, std::size_t count, ncclDataType_t type,
                           ncclRedOp_t op, ncclComm_t comm, cudaStream_t stream) {
  return library().add(comm, stream, "ncclAllReduce", out,
                       {Operation::all_reduce, in, out, count * size_of(type), -1, op});
}
ncclResult_t ncclReduce(const void* in, void* out, std::size_t count, ncclDataType_t type,
                        ncclRedOp_t op, int root, ncclComm_t comm, cudaStream_t stream) {
  return library().add(comm, stream, "ncclReduce", out,
                       {Operation::reduce, in, out, count * size_of(type), root, op});
}
ncclResult_t ncclBroadcast(const void* in, void* out, std::size_t count, ncclDataType_t type,
                           int root, ncclComm_t comm, cudaStream_t stream) {
  return library().add(comm, stream, "ncclBroadcast", out,
                       {Operation::broadcast, in, out, count * size_of(type), root, ncclSum});
}

ncclResult_t ncclMemAlloc(void** address, std::size_t bytes) {
  return library().allocate(address, bytes);
}
ncclResult_t ncclMemFree(void* address) { return library().release_memory(address); }
ncclResult_t ncclCommRegister(ncclComm_t comm, void* address, std::size_t bytes, void** handle) {
  return library().add_memory(comm, address, bytes, handle);
}
ncclResult_t ncclCommDeregister(ncclComm_t comm, void* handle) {
  return library().remove_memory(comm, handle);
}

}  // extern "C"
