#include "comm/transport/doorbell.h"

#include <linux/futex.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <ctime>

namespace ringlet::comm {

namespace {

// Not the private kind: the word may be shared with other processes.
void call_futex(std::atomic<std::uint32_t>& word, int operation, std::uint32_t value,
                const timespec* timeout) noexcept {
  static_assert(sizeof word == sizeof(std::uint32_t));
  ::syscall(SYS_futex, &word, operation, value, timeout, nullptr, 0);
}

}  // namespace

void Doorbell::sleep(std::chrono::nanoseconds longest) noexcept {
  const auto seconds = std::chrono::duration_cast<std::chrono::seconds>(longest);
  const timespec timeout{.tv_sec = static_cast<std::time_t>(seconds.count()),
                         .tv_nsec = static_cast<long>((longest - seconds).count())};
  call_futex(asleep_, FUTEX_WAIT, 1, &timeout);
}

void Doorbell::wake() noexcept { call_futex(asleep_, FUTEX_WAKE, 1, nullptr); }

}  // namespace ringlet::comm
