#include "app/cli/signals.h"

#include <sys/eventfd.h>
#include <unistd.h>

#include <array>
#include <atomic>
#include <cerrno>
#include <cstddef>
#include <cstdint>
#include <ctime>
#include <utility>

namespace ringlet::app {

namespace {

constexpr std::int64_t kGraceNs = 1'000'000'000;

std::atomic<int> noted{0};
std::atomic<std::int64_t> insisted_at_ns{0};  // when the first SIGINT or SIGTERM came
std::atomic<int> bell{-1};                    // eventfd(2), rung when a signal is noted; stays open
static_assert(std::atomic<int>::is_always_lock_free);
static_assert(std::atomic<std::int64_t>::is_always_lock_free);

/// Whether each of kStopSignals was ignored when the program was started.
struct AtStart {
  bool is_known = false;
  std::array<bool, kStopSignals.size()> ignored{};
} at_start;

void note_start(int /*argc*/, char** /*argv*/, char** /*environment*/) {
  for (std::size_t i = 0; i < kStopSignals.size(); ++i) {
    at_start.ignored[i] = ignores(kStopSignals[i]);
  }
  at_start.is_known = true;
}

// What stands in this section runs before the constructors of libraries. That of UCX, which comes
// with Gloo where that is built with MPI (Debian 13), handles SIGHUP (UCX_DEBUG_SIGNO).
[[gnu::section(".preinit_array"), gnu::used]] void (*const noting_start)(int, char**,
                                                                         char**) = note_start;

/// The steady clock, which a handler may read.
std::int64_t now_ns() {
  timespec now{};
  clock_gettime(CLOCK_MONOTONIC, &now);
  return now.tv_sec * 1'000'000'000 + now.tv_nsec;
}

void ring() {
  const std::uint64_t one = 1;
  if (bell.load() >= 0) (void)!::write(bell.load(), &one, sizeof one);
}

/// The handler.
void note(int signal) {
  const int error = errno;
  note_stop(signal);
  errno = error;
  if (signal != SIGINT && signal != SIGTERM) return;
  std::int64_t first = 0;
  const std::int64_t now = now_ns();
  if (insisted_at_ns.compare_exchange_strong(first, now) || now - first < kGraceNs) return;
  std::signal(signal, SIG_DFL);
  std::raise(signal);  // takes effect when this handler returns
}

}  // namespace

bool ignores(int signal) {
  struct sigaction action {};
  return sigaction(signal, nullptr, &action) == 0 && action.sa_handler == SIG_IGN;
}

void note_stop_signals() {
  if (bell.load() < 0) bell.store(::eventfd(0, EFD_CLOEXEC));
  struct sigaction action {};
  action.sa_handler = note;
  action.sa_flags = SA_RESTART;
  for (const int signal : kStopSignals) {
    if (!ignores(signal)) sigaction(signal, &action, nullptr);
  }
}

void take_signals_back() {
  if (!at_start.is_known) return;
  for (std::size_t i = 0; i < kStopSignals.size(); ++i) {
    std::signal(kStopSignals[i], at_start.ignored[i] ? SIG_IGN : SIG_DFL);
  }
}

void fail_writes_beyond_limit() { std::signal(SIGXFSZ, SIG_IGN); }

void note_stop(int signal) {
  int none = 0;
  if (noted.compare_exchange_strong(none, signal)) ring();
}

int noted_signal() { return noted.load(); }

StopWatcher::StopWatcher(std::function<void(int signal)> tell)
    : thread_([tell = std::move(tell)](const std::stop_token& end) {
        while (!end.stop_requested()) {
          if (const int signal = noted_signal(); signal != 0) return tell(signal);
          std::uint64_t rings = 0;
          if (::read(bell.load(), &rings, sizeof rings) < 0 && errno != EINTR) return;
        }
      }) {}

StopWatcher::~StopWatcher() {
  thread_.request_stop();
  ring();
}

}  // namespace ringlet::app
