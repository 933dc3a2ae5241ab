#include "bench/all_reduce/rank_barrier.h"

#include <new>
#include <thread>

#include "base/processors.h"

namespace ringlet::bench {

namespace {

constexpr double kMeetingSeconds = 60;

}  // namespace

// Zero, as new memory is, is how the counters begin.
RankBarrier::RankBarrier(comm::Group& group)
    : ranks_(group.size()),
      crowded_(ranks_ > usable_processors()),
      shared_(group.machines() > 1
                  ? nullptr
                  : group.share("where the ranks meet", sizeof(Counters), kMeetingSeconds)),
      counters_(std::launder(static_cast<Counters*>(shared_.get()))) {}

void RankBarrier::meet(comm::Communicator& communicator, Stream& stream) {
  if (!shared_) return communicator.barrier(stream, "before a call");
  constexpr int kLooks = 4096;  // at the counter, between looks at whether somebody has failed
  const std::int64_t round = counters_->round.load(std::memory_order_relaxed);
  if (counters_->arrived.fetch_add(1, std::memory_order_acq_rel) + 1 == ranks_) {
    counters_->arrived.store(0, std::memory_order_relaxed);
    counters_->round.store(round + 1, std::memory_order_release);
    return;
  }
  for (int looks = 1; counters_->round.load(std::memory_order_acquire) == round; ++looks) {
    if (crowded_) std::this_thread::yield();
    if (looks % kLooks != 0) continue;
    communicator.require_alive();
    std::this_thread::yield();  // some other program may hold the processor that a rank waits for
  }
}

}  // namespace ringlet::bench
