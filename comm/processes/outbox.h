// Outbox: the messages to one other process that its socket has not taken yet. A socket is full
// when the other side reads too slowly; then nothing is lost, and nobody waits.
//
// An abort replaces what waits: nothing else matters then. Only a message that has gone
// in part goes to its end first, over TCP. The outbox has no limit: messages are few and small, and
// who reads none of them runs into a time-out.
#pragma once

#include <deque>

#include "comm/processes/message_socket.h"

namespace ringlet::comm {

class Outbox {
 public:
  /// Throws CommError for a message that is longer than Message::kLongest.
  void push(Message message);
  /// Sends what the socket takes. Never blocks. What can reach nobody any more is dropped.
  void send_to(MessageSocket& socket);
  bool empty() const { return waiting_.empty(); }

 private:
  std::deque<Message> waiting_;
  bool first_has_begun_ = false;
};

}  // namespace ringlet::comm
