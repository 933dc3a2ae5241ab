#include "comm/processes/hub_line.h"

#include <poll.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include <array>
#include <utility>

namespace ringlet::comm {

HubLine::HubLine() : wake_(::eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK)) {
  if (wake_ < 0) throw_socket_error("eventfd");
}

HubLine::~HubLine() { ::close(wake_); }

void HubLine::send(Message message) {
  {
    const std::lock_guard lock(mutex_);
    outbox_.push(std::move(message));
  }
  if (send_waiting()) (void)::eventfd_write(wake_, 1);
}

/// Whether there is more than the socket takes just now.
bool HubLine::send_waiting() {
  const std::lock_guard lock(mutex_);
  outbox_.send_to(hub_);
  return !outbox_.empty();
}

std::optional<Message> HubLine::receive() {
  while (true) {
    const short writable = send_waiting() ? POLLOUT : 0;
    std::array<pollfd, 2> waiting{
        {{hub_.descriptor(), static_cast<short>(POLLIN | writable), 0}, {wake_, POLLIN, 0}}};
    ::poll(waiting.data(), waiting.size(), -1);
    eventfd_t rung = 0;
    if (waiting[1].revents != 0) (void)::eventfd_read(wake_, &rung);
    if ((waiting[0].revents & ~POLLOUT) != 0) return hub_.receive();
  }
}

}  // namespace ringlet::comm
