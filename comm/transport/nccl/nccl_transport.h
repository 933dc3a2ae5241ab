// The transport over NCCL, for replicas that have a GPU each, in one process or in several, on one
// machine or on several. NCCL finds the network between machines itself; NCCL_SOCKET_IFNAME tells
// it which one to take.
//
// An exchange is one group of ncclSend and ncclRecv on the caller's stream; adding receives into
// the stream's workspace first. Streams of the host go on over a host transport, which also brings
// NCCL's unique id to all ranks, keeps the flight recorders and carries an abort.
//
// Each rank has one communicator, made by its own thread. Communicators are non-blocking: a call
// returns at once. It is then polled until NCCL has truly enqueued its work, for no longer than the
// time-out, and only while no rank has failed.
//
// What is enqueued can still hang on the GPU, for a peer that never comes, and with it every host
// thread that waits for the stream. So each rank has a thread that watches: when the world is given
// up, when NCCL reports an error, or when the stream has not moved for as long as the time-out
// permits, it ends the rank's communicator with ncclCommAbort, and the stream comes to rest. Before
// that, every thread of the process has left NCCL's calls (call_gate.h).
//
// allocator() gives memory of ncclMemAlloc, registered with the rank's communicator, where the
// library has them (2.19): NCCL then moves it without a copy of its own.
//
// Where a process has one rank, CUDA graphs may hold its calls. Whether NCCL and the driver take
// that is tried at the start, by one small sum. A communicator that failed in it is thrown away.
// With RINGLET_NCCL_THREADS=off (base/switches.h) a communicator that is captured blocks.
#pragma once

#include <memory>
#include <string>

#include "comm/core/transport.h"

namespace ringlet::comm {

/// Shared by the threads of a process. Made before them, outlives their transports.
class NcclGroup {
 public:
  virtual ~NcclGroup() = default;

  /// Collective over the ranks of `host`, each on its own thread with a GPU of its own. The
  /// transport is for `stream`, one of CUDA's, and must end before it; `host` must outlive it.
  /// Throws CommError naming the call, the rank and the device, or two ranks that have one GPU;
  /// TimeoutError or Aborted.
  /// `wants_captures`, on all ranks or on none: each has a process for itself, and its calls shall
  /// be captured in graphs, where that is possible (Transport::captures()). Graphs must end before
  /// the transport does.
  virtual std::unique_ptr<Transport> join(Transport& host, Stream& stream,
                                          bool wants_captures = false) = 0;
};

/// Throws DeviceError, with the remedy, where NCCL cannot be opened or Ringlet was built without.
std::unique_ptr<NcclGroup> open_nccl();

/// The version of the library found at run time, "2.28.9"; empty where it cannot be opened.
std::string nccl_version();

}  // namespace ringlet::comm
