// MessageSocket: short messages between processes of one user on one machine, over a Unix-domain
// socket of type SEQPACKET, which keeps messages whole and in order.
//
// Its name is *abstract*: it lives in the kernel, not in the file system. So there is no file to
// leave behind and no port to collide with, and the kernel closes it when its process dies, however
// that happens: the other side then reads the end at once. Abstract names have no permissions; so
// whoever connects or accepts asks the kernel who the other one is, and talks to its own user only.
#pragma once

#include <sys/types.h>

#include <chrono>
#include <cstdint>
#include <optional>
#include <string>
#include <utility>

#include "comm/processes/message.h"

namespace ringlet::comm {

/// Throws CommError for a `call` about sockets that has failed; errno says why.
[[noreturn]] void throw_socket_error(const char* call);

class MessageSocket {
 public:
  enum class Sent : std::uint8_t {
    all,
    nothing_yet,  ///< the socket is full: the other side has much to read
    never,        ///< the other side has gone
  };

  MessageSocket() = default;
  explicit MessageSocket(int descriptor) : descriptor_(descriptor) {}
  ~MessageSocket();
  MessageSocket(MessageSocket&& other) noexcept;
  MessageSocket& operator=(MessageSocket&& other) noexcept;

  /// Listens under `name`; an empty socket if another process does so already. Throws CommError.
  static MessageSocket listen(const std::string& name);
  /// Connects to who listens under `name`; an empty socket if nobody does. Throws CommError.
  static MessageSocket connect(const std::string& name);
  /// Two that are connected with each other.
  static std::pair<MessageSocket, MessageSocket> make_pair();
  /// The next connection, of this user's processes only; an empty socket if there is none just now.
  /// Never blocks. Throws CommError where the machine's limits permit no more.
  MessageSocket accept() const;

  bool open() const { return descriptor_ >= 0; }
  int descriptor() const { return descriptor_; }
  /// The number of the process on the other side.
  pid_t peer_process() const;

  /// Sends the whole message, of Message::kLongest bytes at most, or nothing of it. Never blocks.
  Sent send(const Message& message) const;
  /// Blocks until there is a message. Nothing at the end of the connection, and for bytes that are
  /// no message: the other side does not speak this protocol. What the other side has sent before
  /// it went is read first, also where it went without reading everything.
  std::optional<Message> receive() const;
  /// Ends the connection: a thread that is in receive() here gets its end.
  void shut_down() const noexcept;

 private:
  int descriptor_ = -1;
};

}  // namespace ringlet::comm
