// A stand-in of NCCL, for machines without a GPU: a library that is opened instead of NCCL, does
// what NCCL does between the threads of one process, and writes down how it was called. It can be
// told to fail, never to come to an end, or to hang.
//
// A cudaStream_t is the address of a StandInStream there. The work of a group is launched on it as
// one piece, which waits for its peers, as NCCL's kernels do, until its communicator is aborted.
//
// What NCCL forbids and would let pass, most of the time, is noted as a violation.
#pragma once

#include <cstddef>
#include <functional>
#include <string>
#include <vector>

namespace ringlet::comm {

/// Runs what is launched on it in order, on a thread of its own.
class StandInStream {
 public:
  virtual ~StandInStream() = default;
  virtual void launch(std::function<void()> work) = 0;
  /// What is launched meanwhile runs later, and as often as its graph does.
  virtual bool is_captured() const = 0;
};

/// A call of the library, in the order in which a rank makes them.
struct NcclCall {
  std::string name;               ///< "ncclSend"
  const void* address = nullptr;  ///< of the data, or of the memory that is registered or freed
  std::size_t bytes = 0;
  int peer = -1;  ///< of a send, a receive; the root of a reduce, a broadcast
  const StandInStream* stream = nullptr;
  int group = 0;  ///< that it was made in, counted from 1 for each rank; 0: in none
};

/// What a call of a rank does instead of what it should. It stays so until reset().
struct NcclFault {
  enum Kind {
    fails,    ///< it returns an error
    endless,  ///< it stays in progress for ever
    hangs     ///< it does not return before release()
  };
  int rank = 0;
  std::string call;
  Kind kind = fails;
  bool only_captured = false;  ///< only while the call's stream is captured
};

/// Any thread may call anything.
class NcclStandIn {
 public:
  virtual ~NcclStandIn() = default;
  /// Forgets everything. There are no communicators, and nothing runs.
  virtual void reset() = 0;
  virtual void inject(const NcclFault& fault) = 0;
  /// Lets calls return that hang, now and from here on.
  virtual void release() = 0;
  /// Lets ncclCommGetAsyncError() find an error on `rank` from here on.
  virtual void break_connection(int rank) = 0;

  /// What a rank has called, but for ncclCommGetAsyncError and ncclGetLastError.
  virtual std::vector<NcclCall> calls(int rank) const = 0;
  /// Threads that hang in a call.
  virtual int hanging() const = 0;
  /// Groups that a rank's stream is in the middle of.
  virtual int running(int rank) const = 0;
  /// Communicators that were neither destroyed nor aborted.
  virtual int communicators() const = 0;
  /// Pieces of memory that are registered, and those that are allocated.
  virtual int registered() const = 0;
  virtual int allocated() const = 0;
  /// The first thing that NCCL forbids; "" if there was none.
  virtual std::string violation() const = 0;
};

/// What the library exports beside NCCL's functions.
using NcclStandInFunction = NcclStandIn*();
inline constexpr const char* kNcclStandInFunction = "ringlet_nccl_stand_in";

}  // namespace ringlet::comm
