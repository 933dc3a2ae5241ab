// What the transport over NCCL stands on: the library, the GPUs' streams, and the kernels that it
// launches itself. Virtual where it is not NCCL's, so that tests can run the transport on a machine
// without a GPU, over a stand-in of the library (tests/comm/nccl_stand_in.h).
#pragma once

#include <memory>
#include <string>

#include "comm/transport/memory_operations.h"
#include "comm/transport/nccl/nccl_library.h"
#include "comm/transport/nccl/nccl_transport.h"
#include "kernels/stream.h"

namespace ringlet::comm {

/// What the transport asks of CUDA about a stream. Any thread may call anything.
class GpuStreams {
 public:
  virtual ~GpuStreams() = default;
  /// The CUDA stream behind `stream`; makes its GPU the calling thread's. Throws ContractError for
  /// another device's stream.
  virtual cudaStream_t handle_of(Stream& stream) const;
  /// Whether work is under way in the stream.
  virtual bool is_busy(cudaStream_t handle) const;
  /// The GPU of `stream`, by a text that no other GPU has. Ranks that NCCL_HOSTID places on several
  /// hosts may share a GPU, as NCCL sees it: they have texts of their own. Throws DeviceError.
  virtual std::string gpu_of(Stream& stream) const;
};

struct NcclBackend {
  const NcclFunctions& library;
  const GpuStreams& streams;
  const MemoryOperations& operations;
};

/// What it refers to outlives the group.
std::unique_ptr<NcclGroup> open_nccl(const NcclBackend& backend);

}  // namespace ringlet::comm
