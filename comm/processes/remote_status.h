// What the ranks of other processes did last: asked for over the rendezvous when a rank has waited
// too long, never before.
#pragma once

#include <chrono>
#include <mutex>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "comm/core/transport.h"
#include "comm/processes/rendezvous.h"

namespace ringlet::comm {

/// A process's answer: the status of its ranks, in the order of ranks, on one channel after the
/// other. Both ends run the same program. On one machine they share its steady clock; times from
/// another machine are moved to this one's, as if the answer had taken no time.
std::string encode(const std::vector<RankStatus>& status);

class RemoteStatus {
 public:
  RemoteStatus(Rendezvous& rendezvous, int replicas)
      : rendezvous_(rendezvous), replicas_(replicas) {}

  /// The status of a rank of another process; nothing if that does not answer soon. Where process 0
  /// passes on no answers, not even this process's own, the others are `unheard`. Any thread.
  std::optional<RankStatus> of(int rank, int channel);

 private:
  void refresh();
  std::vector<std::optional<RankStatus>> decode(const std::string& answer, bool from_elsewhere);

  Rendezvous& rendezvous_;
  int replicas_;  // of each process
  std::mutex mutex_;
  std::vector<std::vector<std::optional<RankStatus>>> of_process_;
  std::set<std::string> activities_;  // what Activity::what points to; they are few
  std::chrono::steady_clock::time_point asked_{};
};

}  // namespace ringlet::comm
