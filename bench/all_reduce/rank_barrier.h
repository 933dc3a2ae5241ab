// RankBarrier: where the ranks of a benchmark meet before each timed call.
//
// They meet in two counters that all watch without sleeping, so they leave within a cache line's
// trip of each other. A barrier of messages would let the first rank go several microseconds before
// the last, which is more than a small all-reduce takes. The counters lie in memory that the ranks
// share, be they threads or processes. Where ranks outnumber the processors, a waiting rank yields.
#pragma once

#include <atomic>
#include <cstdint>
#include <memory>

#include "comm/communicator.h"
#include "comm/core/group.h"

namespace ringlet::bench {

/// Shared by the threads of a process. Made before them, outlives them.
class RankBarrier {
 public:
  /// For all ranks of the group's world: collective over its processes. Throws CommError where they
  /// cannot share memory, Aborted.
  explicit RankBarrier(comm::Group& group);

  /// Returns when every rank has come. Throws Aborted where one of them has failed. Ranks on
  /// several machines share no memory: they meet by messages, and leave a message's time apart.
  void meet(comm::Communicator& communicator, Stream& stream);

 private:
  struct Counters {
    alignas(64) std::atomic<int> arrived{0};
    alignas(64) std::atomic<std::int64_t> round{0};
  };
  static_assert(std::atomic<int>::is_always_lock_free &&
                std::atomic<std::int64_t>::is_always_lock_free);

  int ranks_;
  bool crowded_;  // more ranks than processors
  std::shared_ptr<void> shared_;
  Counters* counters_;
};

}  // namespace ringlet::bench
