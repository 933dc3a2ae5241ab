#include "bench/all_reduce/rank_barrier.h"

#include <new>
#include <thread>

#include "base/processors.h"

namespace ringlet::bench {

namespace {

constexpr double kMeetingSeconds = 60;

}  // namespace

RankBarrier::RankBarrier(comm::Group& group)
    : ranks_(group.size()),
      crowded_(ranks_ > usable_processors()),
      shared_(group.machines() > 1
                  ? nullptr
                  : group.share("where the ranks meet", sizeof(CommonStart), kMeetingSeconds)),
      start_(std::launder(static_cast<CommonStart*>(shared_.get()))) {}

void RankBarrier::meet(comm::Communicator& communicator, Stream& stream) {
  if (!shared_) return communicator.barrier(stream, "before a call");
  constexpr int kLooks = 4096;  // between looks at whether somebody has failed
  start_->meet(ranks_, [&](int looks) {
    if (crowded_) std::this_thread::yield();
    if (looks % kLooks != 0) return;
    communicator.require_alive();
    std::this_thread::yield();  // some other program may hold the processor that a rank waits for
  });
}

}  // namespace ringlet::bench
