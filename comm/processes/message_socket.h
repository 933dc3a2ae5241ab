// MessageSocket: short messages between the processes of a run.
//
// On one machine, between processes of one user, it is a Unix-domain socket of type SEQPACKET,
// which keeps messages whole and in order. Its name is *abstract*: it lives in the kernel, not in
// the file system. So there is no file to leave behind and no port to collide with, and the kernel
// closes it when its process dies, however that happens: the other side then reads the end at once.
// Abstract names have no permissions; so whoever connects or accepts asks the kernel who the other
// one is, and talks to its own user only.
//
// Between machines it is a TCP connection, which carries frames (frames.h). Nobody can ask a kernel
// there: whoever accepts has to look at the first message.
#pragma once

#include <sys/types.h>

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <utility>

#include "comm/processes/frames.h"
#include "comm/processes/message.h"
#include "comm/processes/tcp_address.h"

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

  enum class Wire : std::uint8_t { packets, stream };

  MessageSocket() = default;
  explicit MessageSocket(int descriptor, Wire wire = Wire::packets)
      : descriptor_(descriptor), wire_(wire) {}
  ~MessageSocket();
  MessageSocket(MessageSocket&& other) noexcept;
  MessageSocket& operator=(MessageSocket&& other) noexcept;

  /// Listens under `name`; an empty socket if another process does so already. Throws CommError.
  static MessageSocket listen(const std::string& name);
  /// Connects to who listens under `name`; an empty socket if nobody does. Throws CommError.
  static MessageSocket connect(const std::string& name);
  /// Listens on this address alone, not on the machine's others. Throws CommError with the remedy
  /// where that cannot be: the host is no address of this machine, or the port is taken.
  static MessageSocket listen(const TcpAddress& address);
  /// Connects; an empty socket if that does not come about within `patience`, and why in `failure`.
  /// Throws CommError for a host that nobody knows.
  static MessageSocket connect(const TcpAddress& address, std::chrono::milliseconds patience,
                               std::string& failure);
  /// Two that are connected with each other.
  static std::pair<MessageSocket, MessageSocket> make_pair(Wire wire = Wire::packets);
  /// The next connection, on one machine of this user's processes only; an empty socket if there is
  /// none just now.
  /// Never blocks. Throws CommError where the machine's limits permit no more.
  MessageSocket accept() const;

  bool open() const { return descriptor_ >= 0; }
  int descriptor() const { return descriptor_; }
  bool is_stream() const { return wire_ == Wire::stream; }
  /// The number of the process on the other side; 0 over TCP, where the kernel does not know.
  pid_t peer_process() const;
  /// This side's address, in numbers; the loopback's for what is no TCP connection.
  TcpAddress own_address() const;

  /// Sends the message, of Message::kLongest bytes at most. Never blocks. A part of it may have
  /// gone where the answer is `nothing_yet`: then the next call has to be with the same message.
  Sent send(const Message& message);
  /// Whether a part of a message has gone.
  bool in_message() const { return begun_ > 0; }

  /// Takes what has come, once. False at the end of the connection. Never blocks.
  bool fill();
  /// The next message of what was taken; nothing where there is none.
  std::optional<Message> next();
  /// Whether the other side does not speak this protocol: it sent bytes that are no message.
  bool is_broken() const { return broken_ || frames_.is_broken(); }
  /// Blocks until there is a message. Nothing at the end of the connection, and once is_broken().
  /// What the other side has sent before it went is read first, also where it went without reading
  /// everything.
  std::optional<Message> receive();
  /// The same, but for `patience` at most; nothing where that was too short.
  std::optional<Message> receive(std::chrono::milliseconds patience);
  /// The longest message that is read, in bytes; over TCP.
  void set_longest(std::size_t bytes) { frames_.set_longest(bytes); }

  /// Ends the connection: a thread that is in receive() here gets its end.
  void shut_down() const noexcept;
  /// Says that no more will come. Reading goes on.
  void finish() const noexcept;

 private:
  Sent send_packet(const Message& message) const;
  Sent send_frame(const Message& message);

  int descriptor_ = -1;
  Wire wire_ = Wire::packets;
  std::size_t begun_ = 0;  // bytes of the message under way that have gone
  Frames frames_;
  std::optional<Message> packet_{};
  bool broken_ = false;
};

}  // namespace ringlet::comm
