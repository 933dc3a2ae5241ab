#include "comm/processes/message_socket.h"

#include <fmt/format.h>
#include <poll.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstddef>
#include <system_error>
#include <utility>

#include "comm/core/errors.h"
#include "comm/processes/tcp_socket.h"

namespace ringlet::comm {

namespace {

struct Address {
  sockaddr_un socket{};
  socklen_t length = 0;
};

Address abstract_address(const std::string& name) {
  Address address;
  address.socket.sun_family = AF_UNIX;
  const std::size_t length = std::min(name.size(), sizeof address.socket.sun_path - 1);
  std::copy_n(name.data(), length, address.socket.sun_path + 1);  // the leading 0 makes it abstract
  address.length = static_cast<socklen_t>(offsetof(sockaddr_un, sun_path) + 1 + length);
  return address;
}

MessageSocket make_socket(int flags = 0) {
  const int descriptor = ::socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC | flags, 0);
  if (descriptor < 0) throw_socket_error("socket");
  return MessageSocket(descriptor);
}

ucred peer_of(int descriptor) {
  ucred peer{};
  socklen_t length = sizeof peer;
  if (::getsockopt(descriptor, SOL_SOCKET, SO_PEERCRED, &peer, &length) != 0)
    throw_socket_error("SO_PEERCRED");
  return peer;
}

}  // namespace

void throw_socket_error(const char* call) {
  throw CommError(fmt::format(
      "the socket between the processes failed: {}: {}; look at this machine's limits (ulimit -a)",
      call, std::generic_category().message(errno)));
}

MessageSocket::~MessageSocket() {
  if (descriptor_ >= 0) ::close(descriptor_);
}

MessageSocket::MessageSocket(MessageSocket&& other) noexcept { *this = std::move(other); }

MessageSocket& MessageSocket::operator=(MessageSocket&& other) noexcept {
  std::swap(descriptor_, other.descriptor_);
  std::swap(wire_, other.wire_);
  std::swap(begun_, other.begun_);
  std::swap(frames_, other.frames_);
  std::swap(packet_, other.packet_);
  std::swap(broken_, other.broken_);
  return *this;
}

MessageSocket MessageSocket::listen(const std::string& name) {
  const Address address = abstract_address(name);
  MessageSocket socket = make_socket(SOCK_NONBLOCK);
  const auto* where = reinterpret_cast<const sockaddr*>(&address.socket);
  if (::bind(socket.descriptor_, where, address.length) != 0) {
    if (errno == EADDRINUSE) return {};
    throw_socket_error("bind");
  }
  if (::listen(socket.descriptor_, SOMAXCONN) != 0) throw_socket_error("listen");
  return socket;
}

MessageSocket MessageSocket::connect(const std::string& name) {
  const Address address = abstract_address(name);
  MessageSocket socket = make_socket();
  const auto* where = reinterpret_cast<const sockaddr*>(&address.socket);
  if (::connect(socket.descriptor_, where, address.length) != 0) {
    if (errno == ECONNREFUSED || errno == EINTR) return {};
    throw_socket_error("connect");
  }
  if (peer_of(socket.descriptor_).uid != ::getuid()) {
    throw CommError("the run's name is held by another user's process; choose another MASTER_PORT");
  }
  return socket;
}

MessageSocket MessageSocket::listen(const TcpAddress& address) {
  std::string failure;
  const int descriptor = listen_tcp(address, failure);
  if (descriptor >= 0) return MessageSocket(descriptor, Wire::stream);
  throw CommError(
      fmt::format("process 0 cannot listen on {}: {}; MASTER_ADDR and MASTER_PORT, or RINGLET_HUB, "
                  "name an address of its machine and a port that is free there",
                  text_of(address), failure));
}

MessageSocket MessageSocket::connect(const TcpAddress& address, std::chrono::milliseconds patience,
                                     std::string& failure) {
  return MessageSocket(connect_tcp(address, patience, failure), Wire::stream);
}

std::pair<MessageSocket, MessageSocket> MessageSocket::make_pair(Wire wire) {
  int ends[2];
  const int type = wire == Wire::packets ? SOCK_SEQPACKET : SOCK_STREAM;
  if (::socketpair(AF_UNIX, type | SOCK_CLOEXEC, 0, ends) != 0) throw_socket_error("socketpair");
  return {MessageSocket(ends[0], wire), MessageSocket(ends[1], wire)};
}

MessageSocket MessageSocket::accept() const {
  MessageSocket socket(::accept4(descriptor_, nullptr, nullptr, SOCK_CLOEXEC), wire_);
  if (!socket.open()) {
    if (errno == EMFILE || errno == ENFILE || errno == ENOBUFS || errno == ENOMEM) {
      throw_socket_error("accept");
    }
    return {};  // whoever came has gone
  }
  if (is_stream()) {
    send_at_once(socket.descriptor_);
  } else if (peer_of(socket.descriptor_).uid != ::getuid()) {
    return {};
  }
  return socket;
}

pid_t MessageSocket::peer_process() const { return is_stream() ? 0 : peer_of(descriptor_).pid; }

TcpAddress MessageSocket::own_address() const {
  if (!is_stream()) return {"127.0.0.1", 0};
  return own_address_of(descriptor_);
}

MessageSocket::Sent MessageSocket::send(const Message& message) {
  return is_stream() ? send_frame(message) : send_packet(message);
}

/// A frame is made anew where the socket has taken a part of it only: that is seldom.
MessageSocket::Sent MessageSocket::send_frame(const Message& message) {
  const std::string frame = frame_of(message);
  while (begun_ < frame.size()) {
    const ssize_t sent = ::send(descriptor_, frame.data() + begun_, frame.size() - begun_,
                                MSG_NOSIGNAL | MSG_DONTWAIT);
    if (sent >= 0) {
      begun_ += static_cast<std::size_t>(sent);
    } else if (errno == EAGAIN || errno == ENOBUFS) {
      return Sent::nothing_yet;
    } else if (errno != EINTR) {
      begun_ = 0;
      return Sent::never;
    }
  }
  begun_ = 0;
  return Sent::all;
}

MessageSocket::Sent MessageSocket::send_packet(const Message& message) const {
  MessageHeader header = header_of(message);
  std::array<iovec, 3> parts{{{&header, sizeof header},
                              {const_cast<char*>(message.key.data()), message.key.size()},
                              {const_cast<char*>(message.value.data()), message.value.size()}}};
  msghdr all{};
  all.msg_iov = parts.data();
  all.msg_iovlen = parts.size();
  ssize_t sent = 0;
  do {
    sent = ::sendmsg(descriptor_, &all, MSG_NOSIGNAL | MSG_DONTWAIT);
  } while (sent < 0 && errno == EINTR);
  if (sent >= 0) return Sent::all;
  return errno == EAGAIN || errno == ENOBUFS ? Sent::nothing_yet : Sent::never;
}

bool MessageSocket::fill() {
  std::string bytes(sizeof(MessageHeader) + Message::kLongest, '\0');
  ssize_t got = 0;
  do {
    got = ::recv(descriptor_, bytes.data(), bytes.size(), MSG_DONTWAIT);
    // Who closes a socket with unread messages in it resets the connection. The kernel tells of
    // that once, before it gives what came from there, which may be the reason.
  } while (got < 0 && (errno == EINTR || errno == ECONNRESET));
  if (got < 0 && errno == EAGAIN) return true;
  if (got <= 0) return false;
  bytes.resize(static_cast<std::size_t>(got));
  if (is_stream()) {
    frames_.add(bytes);
  } else {
    packet_ = parse_message(bytes);
    broken_ = !packet_;
  }
  return true;
}

std::optional<Message> MessageSocket::next() {
  return is_stream() ? frames_.next() : std::exchange(packet_, std::nullopt);
}

std::optional<Message> MessageSocket::receive() {
  while (true) {
    if (auto message = next()) return message;
    pollfd waiting{descriptor_, POLLIN, 0};
    ::poll(&waiting, 1, -1);
    if (is_broken() || !fill()) return {};
  }
}

std::optional<Message> MessageSocket::receive(std::chrono::milliseconds patience) {
  using Clock = std::chrono::steady_clock;
  const Clock::time_point deadline = Clock::now() + patience;
  while (true) {
    if (auto message = next()) return message;
    const auto left = std::chrono::ceil<std::chrono::milliseconds>(deadline - Clock::now());
    pollfd waiting{descriptor_, POLLIN, 0};
    if (is_broken() || left.count() <= 0) return {};
    if (::poll(&waiting, 1, static_cast<int>(left.count())) > 0 && !fill()) return {};
  }
}

void MessageSocket::shut_down() const noexcept { ::shutdown(descriptor_, SHUT_RDWR); }

void MessageSocket::finish() const noexcept { ::shutdown(descriptor_, SHUT_WR); }

}  // namespace ringlet::comm
