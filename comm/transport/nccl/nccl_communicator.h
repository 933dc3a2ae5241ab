// NcclCommunicator: one rank's communicator of NCCL, and safe to abort, unless it is blocking.
#pragma once

#include <cstddef>
#include <functional>
#include <mutex>
#include <string>

#include "comm/core/errors.h"
#include "comm/core/world.h"
#include "comm/transport/call_gate.h"
#include "comm/transport/nccl/nccl_library.h"

namespace ringlet::comm {

/// The rank as its communicator sees it.
struct NcclRank {
  World world;
  int number = 0;      ///< of the rank in all of the world, for messages
  std::string device;  ///< "cuda:1", for messages
  std::function<double()> timeout_seconds;
  std::function<void()> throw_if_aborted;           ///< throws if any rank has failed
  std::function<void(const std::string&)> give_up;  ///< this rank has failed
};

/// enqueue() belongs to the thread that runs the rank's stream; the others to any thread.
class NcclCommunicator {
 public:
  /// Collective: returns when all ranks have come and NCCL has connected them. The calling thread's
  /// current GPU is the rank's. `blocking`: a call that waits for another rank returns when that
  /// has come, whatever happens meanwhile. Throws CommError, TimeoutError or Aborted.
  NcclCommunicator(const NcclFunctions& nccl, CallGate& gate, const ncclUniqueId& id, NcclRank rank,
                   bool blocking);
  /// Lets NCCL finish, unless a rank has failed. Where NCCL does not, this rank has failed.
  ~NcclCommunicator();
  NcclCommunicator(const NcclCommunicator&) = delete;
  NcclCommunicator& operator=(const NcclCommunicator&) = delete;

  /// Makes calls of the library that belong together, as one group; returns when their work is in
  /// the stream. calls(handle) gives the first result that is a failure, else any. `what` names the
  /// calls in errors. Throws as the constructor does.
  template <class Calls>
  void enqueue(const char* what, Calls calls) {
    settle(what, call([this, &calls] {
             const ncclResult_t begun = nccl_.ncclGroupStart();
             if (is_failure(begun)) return begun;
             const ncclResult_t called = calls(handle_);
             const ncclResult_t ended = nccl_.ncclGroupEnd();
             return is_failure(called) ? called : ended;
           }));
  }

  /// What NCCL has run into behind the host's back; "" while all is well, and while another thread
  /// is in a call of this communicator's.
  std::string asynchronous_error();
  /// Ends all work in flight, after the world was aborted. Waits until no thread of the process is
  /// in a call of NCCL's, and lets none in any more. NCCL may hang in it; the world then knows of
  /// the abort, so that whoever runs the ranks can end the process (train/loop/replica_watch.h).
  void abort() noexcept;

  /// Registers memory that collectives will use, until remove_memory(). Gives null where NCCL does
  /// not take it, or a rank has failed: the memory can be used all the same.
  void* add_memory(void* address, std::size_t bytes) noexcept;
  void remove_memory(void* handle) noexcept;

  static bool is_failure(ncclResult_t result) {
    return result != ncclSuccess && result != ncclInProgress;
  }

 private:
  /// Inside the gate, and alone with the communicator.
  template <class Function>
  ncclResult_t call(Function function) {
    const CallGate::Pass pass(gate_);
    if (!pass) throw_closed();
    const std::lock_guard lock(mutex_);
    return function();
  }
  bool is_aborted();
  void settle(const char* what, ncclResult_t result);
  [[noreturn]] void fail(const char* what, ncclResult_t result);
  [[noreturn]] void throw_closed() const;

  const NcclFunctions& nccl_;
  CallGate& gate_;
  NcclRank rank_;
  std::mutex mutex_;  // a communicator serves one thread at a time
  ncclComm_t handle_ = nullptr;
};

}  // namespace ringlet::comm
