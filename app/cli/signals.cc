#include "app/cli/signals.h"

#include <atomic>
#include <csignal>
#include <cstdint>
#include <ctime>

namespace ringlet::app {

namespace {

std::atomic<int> noted{0};
std::atomic<std::int64_t> noted_at_ns{0};
std::atomic<std::int64_t> grace_ns{0};
static_assert(std::atomic<int>::is_always_lock_free);
static_assert(std::atomic<std::int64_t>::is_always_lock_free);

/// The steady clock, which a handler may read.
std::int64_t now_ns() {
  timespec now{};
  clock_gettime(CLOCK_MONOTONIC, &now);
  return now.tv_sec * 1'000'000'000 + now.tv_nsec;
}

void note(int signal) {
  if (noted.load() == 0) {
    noted_at_ns.store(now_ns());
    noted.store(signal);
  } else if (now_ns() - noted_at_ns.load() >= grace_ns.load()) {
    std::signal(signal, SIG_DFL);
    std::raise(signal);  // takes effect when this handler returns
  }
}

}  // namespace

void note_stop_signals(std::chrono::nanoseconds grace) {
  grace_ns.store(grace.count());
  struct sigaction action {};
  action.sa_handler = note;
  action.sa_flags = SA_RESTART;
  sigaction(SIGINT, &action, nullptr);
  sigaction(SIGTERM, &action, nullptr);
}

void fail_writes_beyond_limit() { std::signal(SIGXFSZ, SIG_IGN); }

void note_stop(int signal) {
  int none = 0;
  noted.compare_exchange_strong(none, signal);
}

int noted_signal() { return noted.load(); }

}  // namespace ringlet::app
