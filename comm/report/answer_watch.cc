#include "comm/report/answer_watch.h"

#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <utility>
#include <vector>

namespace ringlet::comm {

AnswerWatch::AnswerWatch(Transport& transport, double seconds, std::string what)
    : transport_(transport),
      seconds_(seconds),
      what_(std::move(what)),
      thread_([this](const std::stop_token& stop) { watch(stop); }) {}

void AnswerWatch::watch(const std::stop_token& stop) {
  using Clock = std::chrono::steady_clock;
  using Seconds = std::chrono::duration<double>;
  constexpr double kLooks = 8, kOften = 0.05, kSeldom = 5;  // a time-out; seconds between two
  const Seconds pause(std::clamp(seconds_ / kLooks, kOften, kSeldom));
  // A look may have to wait for an answer. Of a pause in which this process was itself stopped no
  // more counts than of any other.
  const Seconds longest = pause + Seconds(2);
  std::vector<Seconds> silent(static_cast<std::size_t>(transport_.size()), Seconds(0));
  Clock::time_point looked = Clock::now();
  std::unique_lock lock(mutex_);
  while (!stopped_.wait_for(lock, stop, pause, [] { return false; }) && !stop.stop_requested()) {
    const Clock::time_point now = Clock::now();
    const Seconds passed = std::min<Seconds>(now - std::exchange(looked, now), longest);
    for (int rank = 0; rank < transport_.size(); ++rank) {
      Seconds& mute = silent[static_cast<std::size_t>(rank)];
      mute = rank == transport_.rank() || transport_.look_at(rank) ? Seconds(0) : mute + passed;
      if (mute.count() <= seconds_) continue;
      return transport_.abort(
          fmt::format("{} has not answered for {:g} s while all waited for '{}'; its process is "
                      "stopped or hangs: see ps",
                      transport_.names().of(transport_.in_world(rank)), seconds_, what_));
    }
  }
}

}  // namespace ringlet::comm
