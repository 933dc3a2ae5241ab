#include "comm/report/wait_watch.h"

#include <algorithm>
#include <cmath>
#include <utility>

#include "comm/report/patience.h"

namespace ringlet::comm {

WaitWatch::WaitWatch(const Transport& transport, std::function<std::uint64_t()> moves,
                     std::function<void(int peer)> give_up)
    : transport_(transport),
      moves_(std::move(moves)),
      give_up_(std::move(give_up)),
      thread_([this](const std::stop_token& stop) { watch(stop); }) {}

/// Time counts by looks, so that of one in which the process was stopped no more counts than of any
/// other.
void WaitWatch::watch(const std::stop_token& stop) {
  using std::chrono::nanoseconds;
  constexpr std::chrono::milliseconds kOften(10), kSeldom(500);
  constexpr int kLooks = 8;  // a time-out
  nanoseconds waited{0}, longest{0};
  std::uint64_t seen = 0;
  std::unique_lock lock(mutex_);
  while (true) {
    const auto pause = std::clamp<nanoseconds>(timeout_of(transport_) / kLooks, kOften, kSeldom);
    if (stopped_.wait_for(lock, stop, pause, [&stop] { return stop.stop_requested(); })) return;
    const std::uint64_t turn = now();
    if (turn != std::exchange(seen, turn) || turn % 2 == 0) {
      waited = nanoseconds(0), longest = timeout_of(transport_);
      continue;
    }
    waited += pause;
    const int peer = peer_.load(std::memory_order_relaxed);
    const bool endless = std::isinf(transport_.timeout_seconds());
    if (endless ? !never_comes(transport_, peer) : waited < longest) continue;
    waited = nanoseconds(0), longest = endless ? waited : patience_of(transport_);
    if (longest.count() > 0 || now() != turn) continue;
    return give_up_(peer);
  }
}

}  // namespace ringlet::comm
