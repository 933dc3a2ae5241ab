// ReplicaWatch: follows the replicas of this process while they run. It knows which have not ended
// yet, and which failure the user shall read.
//
// A thread that hangs for ever (in a driver call, say) can be neither ended nor joined. So that the
// user still reads what went wrong, wait() gives up some time after the first failure, if
// Execution::on_hang is set; sooner where a library holds a thread (Transport::is_held). A
// failure is what a replica has thrown, and also an abort of the group by a thread that watches for
// a replica: that may hang without ever throwing.
#pragma once

#include <condition_variable>
#include <exception>
#include <mutex>
#include <optional>
#include <set>
#include <string>

#include "comm/core/group.h"
#include "train/recipe/options.h"

namespace ringlet::train {

class ReplicaWatch {
 public:
  /// Both outlive the watch. Nobody runs at first. A rank is called what the group calls it, or
  /// else a replica, with its device.
  ReplicaWatch(const Execution& execution, comm::Group& group)
      : execution_(execution), group_(group) {}

  /// To be called before the replica's thread is started.
  void started(int rank);
  /// To be called last by the replica's thread. Any thread may call this and failed().
  void ended(int rank);
  void failed(int rank, std::exception_ptr error);

  /// Returns when all replicas have ended. Where on_hang is set and some hang, returns when on_hang
  /// does.
  void wait();
  /// Throws the first root cause, or else the first failure, with its replica's name in front if
  /// there are several replicas. To be called when all threads have been joined.
  void rethrow() const;

 private:
  struct Failure {
    std::exception_ptr error;
    int rank = 0;
  };
  std::optional<comm::RootCause> root_cause() const;
  const Failure& shown() const { return root_.error ? root_ : secondary_; }
  std::string name_of(int rank) const;
  double wait_for_end(std::unique_lock<std::mutex>& lock);
  std::string explain_hang(double seconds) const;

  const Execution& execution_;
  comm::Group& group_;
  std::mutex mutex_;
  std::condition_variable changed_;
  std::set<int> running_;
  Failure root_, secondary_;
};

}  // namespace ringlet::train
