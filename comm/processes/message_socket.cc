#include "comm/processes/message_socket.h"

#include <fmt/format.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstddef>
#include <system_error>
#include <utility>

#include "comm/errors.h"

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

MessageSocket::MessageSocket(MessageSocket&& other) noexcept
    : descriptor_(std::exchange(other.descriptor_, -1)) {}

MessageSocket& MessageSocket::operator=(MessageSocket&& other) noexcept {
  std::swap(descriptor_, other.descriptor_);
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

std::pair<MessageSocket, MessageSocket> MessageSocket::make_pair() {
  int ends[2];
  if (::socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, ends) != 0)
    throw_socket_error("socketpair");
  return {MessageSocket(ends[0]), MessageSocket(ends[1])};
}

MessageSocket MessageSocket::accept() const {
  MessageSocket socket(::accept4(descriptor_, nullptr, nullptr, SOCK_CLOEXEC));
  if (!socket.open()) {
    if (errno != EAGAIN && errno != EINTR && errno != ECONNABORTED) throw_socket_error("accept");
    return {};
  }
  if (peer_of(socket.descriptor_).uid != ::getuid()) return {};
  return socket;
}

pid_t MessageSocket::peer_process() const { return peer_of(descriptor_).pid; }

MessageSocket::Sent MessageSocket::send(const Message& message) const {
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

std::optional<Message> MessageSocket::receive() const {
  std::string bytes(sizeof(MessageHeader) + Message::kLongest, '\0');
  ssize_t got = 0;
  do {
    got = ::recv(descriptor_, bytes.data(), bytes.size(), 0);
    // Who closes a socket with unread messages in it resets the connection. The kernel tells of
    // that once, before it gives what came from there, which may be the reason.
  } while (got < 0 && (errno == EINTR || errno == ECONNRESET));
  return parse_message({bytes.data(), static_cast<std::size_t>(std::max<ssize_t>(got, 0))});
}

void MessageSocket::shut_down() const noexcept { ::shutdown(descriptor_, SHUT_RDWR); }

}  // namespace ringlet::comm
