#include "bench/all_reduce/rank_barrier.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/mman.h>
#include <unistd.h>

#include <cerrno>
#include <new>
#include <optional>
#include <string>
#include <system_error>
#include <thread>

#include "comm/errors.h"

namespace ringlet::bench {

namespace {

/// Memory that other processes can open by a name, and the name: the first process makes it, and
/// it goes with the last one.
std::string make_shared(int& descriptor, std::size_t bytes) {
  descriptor = memfd_create("ringlet ranks meet here", MFD_CLOEXEC);
  if (descriptor < 0 || ftruncate(descriptor, static_cast<off_t>(bytes)) != 0) return "";
  return fmt::format("/proc/{}/fd/{}", getpid(), descriptor);
}

}  // namespace

RankBarrier::RankBarrier(comm::Group& group)
    : ranks_(group.size()),
      crowded_(static_cast<unsigned>(ranks_) > std::thread::hardware_concurrency()),
      counters_(&own_) {
  if (group.processes() > 1) share(group);
}

RankBarrier::~RankBarrier() {
  if (counters_ != &own_) munmap(counters_, sizeof(Counters));
  if (descriptor_ >= 0) close(descriptor_);
}

void RankBarrier::share(comm::Group& group) {
  constexpr double kPatience = 60;  // seconds
  std::optional<std::string> mine;
  if (group.process() == 0) mine = make_shared(descriptor_, sizeof(Counters));
  const std::string name = group.agree("where the ranks meet", mine, kPatience);
  if (descriptor_ < 0) descriptor_ = open(name.c_str(), O_RDWR | O_CLOEXEC);
  // Zero, as new memory is, is how the counters begin.
  void* const memory =
      mmap(nullptr, sizeof(Counters), PROT_READ | PROT_WRITE, MAP_SHARED, descriptor_, 0);
  if (memory == MAP_FAILED) {
    throw comm::CommError(fmt::format(
        "the ranks' processes cannot share memory to meet in before each timed call: {}; measure "
        "threads, without --processes",
        std::generic_category().message(errno)));
  }
  counters_ = std::launder(static_cast<Counters*>(memory));
}

void RankBarrier::meet(const comm::Communicator& communicator) {
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
