// RankBarrier: where the ranks of a benchmark meet before each timed call.
//
// They meet in memory that they share, be they threads or processes, and all watch without sleeping
// (common_start.h). A barrier of messages would let the first rank go several microseconds before
// the last, which is more than a small all-reduce takes. Where ranks outnumber the processors, a
// waiting rank yields.
#pragma once

#include <memory>

#include "bench/all_reduce/common_start.h"
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
  int ranks_;
  bool crowded_;  // more ranks than processors
  std::shared_ptr<void> shared_;
  CommonStart* start_;
};

}  // namespace ringlet::bench
