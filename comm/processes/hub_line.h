// HubLine: a process's connection to the hub. Any thread may send, and none waits for that; one
// thread receives, and sends what the socket did not take at once.
#pragma once

#include <sys/types.h>

#include <mutex>
#include <optional>
#include <utility>

#include "comm/processes/message_socket.h"
#include "comm/processes/outbox.h"

namespace ringlet::comm {

class HubLine {
 public:
  /// Throws CommError.
  HubLine();
  ~HubLine();
  HubLine(const HubLine&) = delete;
  HubLine& operator=(const HubLine&) = delete;

  /// To be called once, before all of the following.
  void connect(MessageSocket hub) { hub_ = std::move(hub); }
  pid_t hubs_process() const { return hub_.peer_process(); }

  /// Throws CommError for a message that is too long.
  void send(Message message);
  /// Blocks until there is a message. Nothing at the end of the connection.
  std::optional<Message> receive();
  /// Ends the connection.
  void shut_down() noexcept { hub_.shut_down(); }

 private:
  bool send_waiting();

  MessageSocket hub_;
  int wake_;  // an eventfd: something waits to be sent
  std::mutex mutex_;
  Outbox outbox_;
};

}  // namespace ringlet::comm
