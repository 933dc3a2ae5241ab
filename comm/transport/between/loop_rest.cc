#include "comm/transport/between/loop_rest.h"

#include <sys/eventfd.h>
#include <unistd.h>

#include <cerrno>
#include <chrono>
#include <system_error>

namespace ringlet::comm {

namespace {

constexpr std::chrono::milliseconds kNap(5);

}  // namespace

LoopRest::LoopRest() : descriptor_(::eventfd(0, EFD_NONBLOCK | EFD_CLOEXEC)) {
  if (descriptor_ >= 0) return;
  throw std::system_error(errno, std::generic_category(), "eventfd");
}

LoopRest::~LoopRest() {
  // The library's thread has left rest() for good. The lock tells checkers of threads as well, who
  // do not see how the library waits for that.
  const std::lock_guard lock(mutex_);
  ::close(descriptor_);
}

void LoopRest::begin() {
  {
    const std::lock_guard lock(mutex_);
    if (inside_++ > 0) return;
  }
  ::eventfd_write(descriptor_, 1);
}

void LoopRest::end() {
  {
    const std::lock_guard lock(mutex_);
    if (--inside_ > 0) return;
  }
  ended_.notify_one();
}

/// Whoever writes has come inside before. So where nobody is inside, all that can be read is old.
void LoopRest::rest() {
  std::unique_lock lock(mutex_);
  eventfd_t old = 0;
  if (ended_.wait_for(lock, kNap, [this] { return inside_ == 0; })) {
    ::eventfd_read(descriptor_, &old);
  }
}

}  // namespace ringlet::comm
