// HubLine: a process's connection to the hub. Any thread may send, and none waits for that; one
// thread receives, and sends what the socket did not take at once. Between machines it keeps up the
// line's pulse (pulse.h) too.
#pragma once

#include <sys/types.h>

#include <mutex>
#include <optional>
#include <utility>

#include "comm/processes/message_socket.h"
#include "comm/processes/outbox.h"
#include "comm/processes/pulse.h"

namespace ringlet::comm {

class HubLine {
 public:
  /// Throws CommError.
  explicit HubLine(Pulse::Clock::duration beat);
  ~HubLine();
  HubLine(const HubLine&) = delete;
  HubLine& operator=(const HubLine&) = delete;

  /// To be called once, before all of the following.
  void connect(MessageSocket hub) { hub_ = std::move(hub); }
  pid_t hubs_process() const { return hub_.peer_process(); }
  /// Whether the hub is on this machine for sure: a Unix-domain socket leads there.
  bool is_local() const { return !hub_.is_stream(); }
  TcpAddress own_address() const { return hub_.own_address(); }

  /// Throws CommError for a message that is too long.
  void send(Message message);
  /// Blocks until there is a message. Nothing at the end of the connection.
  std::optional<Message> receive();
  /// For how many seconds nothing had come when receive() took the hub for dead; 0: it has not.
  double silent_seconds() const { return silent_seconds_; }
  /// Ends the connection.
  void shut_down() noexcept { hub_.shut_down(); }

 private:
  bool send_waiting();
  bool wait_for_events();
  bool keep_up_pulse(bool heard);

  MessageSocket hub_;
  Pulse pulse_;                // of the receiving thread
  double silent_seconds_ = 0;  // likewise
  int wake_;                   // an eventfd: something waits to be sent
  std::mutex mutex_;
  Outbox outbox_;
};

}  // namespace ringlet::comm
