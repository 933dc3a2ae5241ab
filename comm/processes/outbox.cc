#include "comm/processes/outbox.h"

#include <fmt/format.h>

#include <cstddef>
#include <utility>

#include "comm/core/errors.h"

namespace ringlet::comm {

void Outbox::push(Message message) {
  const std::size_t bytes = message.key.size() + message.value.size();
  if (bytes > Message::kLongest) {
    throw CommError(fmt::format("a message of {} bytes between the processes is longer than {}",
                                bytes, Message::kLongest));
  }
  if (message.kind == Message::Kind::abort) waiting_.resize(first_has_begun_ ? 1 : 0);
  waiting_.push_back(std::move(message));
}

void Outbox::send_to(MessageSocket& socket) {
  while (!waiting_.empty()) {
    const MessageSocket::Sent sent = socket.send(waiting_.front());
    first_has_begun_ = socket.in_message();
    if (sent == MessageSocket::Sent::never) return waiting_.clear();
    if (sent == MessageSocket::Sent::nothing_yet) return;
    waiting_.pop_front();
  }
}

}  // namespace ringlet::comm
