#include "train/cli/signals.h"

#include <atomic>
#include <csignal>

namespace ringlet::train {

namespace {

std::atomic<int> noted{0};
static_assert(std::atomic<int>::is_always_lock_free);

void note(int signal) { noted.store(signal); }

}  // namespace

void note_stop_signals() {
  struct sigaction action {};
  action.sa_handler = note;
  action.sa_flags = static_cast<int>(SA_RESETHAND) | SA_RESTART;
  sigaction(SIGINT, &action, nullptr);
  sigaction(SIGTERM, &action, nullptr);
}

void fail_writes_beyond_limit() { std::signal(SIGXFSZ, SIG_IGN); }

int noted_signal() { return noted.load(); }

}  // namespace ringlet::train
