#include "comm/processes/hub_line.h"

#include <poll.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include <array>
#include <utility>

namespace ringlet::comm {

HubLine::HubLine(Pulse::Clock::duration beat)
    : pulse_(beat), wake_(::eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK)) {
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
    if (auto message = hub_.next()) {
      if (message->kind != Message::Kind::beat) return message;
    } else if (hub_.is_broken() || !wait_for_events()) {
      return {};
    }
  }
}

/// Waits for whatever there is to do, and does it. False at the end of the connection.
bool HubLine::wait_for_events() {
  using std::chrono::milliseconds;
  const short writable = send_waiting() ? POLLOUT : 0;
  std::array<pollfd, 2> waiting{
      {{hub_.descriptor(), static_cast<short>(POLLIN | writable), 0}, {wake_, POLLIN, 0}}};
  const auto pause = std::chrono::ceil<milliseconds>(pulse_.pause()).count();
  ::poll(waiting.data(), waiting.size(), is_local() ? -1 : static_cast<int>(pause));
  eventfd_t rung = 0;
  if (waiting[1].revents != 0) (void)::eventfd_read(wake_, &rung);
  const bool readable = (waiting[0].revents & ~POLLOUT) != 0;
  if (readable && !hub_.fill()) return false;
  return is_local() || keep_up_pulse(readable);
}

/// False where the hub has been silent for too long.
bool HubLine::keep_up_pulse(bool heard) {
  const Pulse::Clock::time_point now = Pulse::Clock::now();
  if (heard) pulse_.hear(now);
  pulse_.look(now);
  if (pulse_.is_dead()) {
    silent_seconds_ = std::chrono::duration<double>(pulse_.silence()).count();
    return false;
  }
  if (!pulse_.is_due(now)) return true;
  const std::lock_guard lock(mutex_);
  if (outbox_.empty()) outbox_.push({.kind = Message::Kind::beat});
  return true;
}

}  // namespace ringlet::comm
