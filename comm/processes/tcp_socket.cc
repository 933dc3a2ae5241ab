#include "comm/processes/tcp_socket.h"

#include <fmt/format.h>
#include <netdb.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <sys/socket.h>

#include <array>
#include <cerrno>
#include <cstring>
#include <memory>
#include <string>
#include <system_error>
#include <vector>

#include "base/descriptor.h"
#include "comm/core/errors.h"
#include "comm/processes/message_socket.h"

namespace ringlet::comm {

namespace {

using Addresses = std::unique_ptr<addrinfo, void (*)(addrinfo*)>;

std::string text_of_error(int error) { return std::generic_category().message(error); }

/// Null for a host that nobody knows, and why in `failure`.
Addresses look_up(const TcpAddress& address, std::string& failure) {
  addrinfo hints{};
  hints.ai_socktype = SOCK_STREAM;
  addrinfo* found = nullptr;
  const std::string port = std::to_string(address.port);
  const int error = ::getaddrinfo(address.host.c_str(), port.c_str(), &hints, &found);
  if (error != 0) failure = ::gai_strerror(error);
  return {error == 0 ? found : nullptr, ::freeaddrinfo};
}

std::string number_of(const sockaddr* address, socklen_t length) {
  std::array<char, NI_MAXHOST> host{};
  const int error =
      ::getnameinfo(address, length, host.data(), host.size(), nullptr, 0, NI_NUMERICHOST);
  return error == 0 ? host.data() : "";
}

/// Not open where this machine has no such addresses: IPv6 may be switched off.
Descriptor make_socket_for(const addrinfo& address) {
  Descriptor socket(::socket(address.ai_family, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0));
  if (!socket.open() && errno != EAFNOSUPPORT) throw_socket_error("socket");
  return socket;
}

/// The other end of a connection may turn out to be this one: the kernel picks a port for it, which
/// may be the one that nobody listens on.
bool is_own_end(int descriptor) {
  sockaddr_storage peer{};
  socklen_t length = sizeof peer;
  if (::getpeername(descriptor, reinterpret_cast<sockaddr*>(&peer), &length) != 0) return false;
  sockaddr_storage own{};
  socklen_t own_length = sizeof own;
  ::getsockname(descriptor, reinterpret_cast<sockaddr*>(&own), &own_length);
  return own_length == length && std::memcmp(&own, &peer, length) == 0;
}

/// 0, or the error for which no connection has come about.
int connect_to(int descriptor, const addrinfo& address, std::chrono::milliseconds patience) {
  if (::connect(descriptor, address.ai_addr, address.ai_addrlen) == 0) return 0;
  if (errno != EINPROGRESS && errno != EINTR) return errno;
  pollfd waiting{descriptor, POLLOUT, 0};
  if (::poll(&waiting, 1, static_cast<int>(patience.count())) <= 0) return ETIMEDOUT;
  int error = 0;
  socklen_t length = sizeof error;
  ::getsockopt(descriptor, SOL_SOCKET, SO_ERROR, &error, &length);
  return error;
}

/// A descriptor, or -1 and why in `failure`. `host` is what was looked up.
int connect_to_any(const Addresses& all, const std::string& host,
                   std::chrono::milliseconds patience, std::string& failure) {
  for (const addrinfo* each = all.get(); each != nullptr; each = each->ai_next) {
    Descriptor socket = make_socket_for(*each);
    const int error = socket.open() ? connect_to(socket.get(), *each, patience) : int{EAFNOSUPPORT};
    if (error == 0 && !is_own_end(socket.get())) {
      send_at_once(socket.get());
      return socket.release();
    }
    failure = text_of_error(error == 0 ? ECONNREFUSED : error);
    const std::string number = number_of(each->ai_addr, each->ai_addrlen);
    if (number != host) failure += " by " + number;  // what this machine takes the name for
  }
  return -1;
}

}  // namespace

int listen_tcp(const TcpAddress& address, std::string& failure) {
  const Addresses all = look_up(address, failure);
  for (const addrinfo* each = all.get(); each != nullptr; each = each->ai_next) {
    Descriptor socket = make_socket_for(*each);
    const int yes = 1;  // a run may follow another one at once
    ::setsockopt(socket.get(), SOL_SOCKET, SO_REUSEADDR, &yes, sizeof yes);
    if (::bind(socket.get(), each->ai_addr, each->ai_addrlen) == 0 &&
        ::listen(socket.get(), SOMAXCONN) == 0) {
      return socket.release();
    }
    failure = text_of_error(socket.open() ? errno : EAFNOSUPPORT);
  }
  return -1;
}

int connect_tcp(const TcpAddress& address, std::chrono::milliseconds patience,
                std::string& failure) {
  std::vector<std::string> names{address.host};
  // Another name of the loopback leads to process 0 too, whatever it calls the loopback itself.
  if (is_loopback(address.host)) names.insert(names.end(), {"127.0.0.1", "::1"});
  for (const std::string& name : names) {
    std::string why;
    const int descriptor = connect_to_any(look_up({name, address.port}, why), name, patience, why);
    if (descriptor >= 0) return descriptor;
    if (name == address.host) failure = why;
  }
  return -1;
}

void send_at_once(int descriptor) {
  const int yes = 1;
  ::setsockopt(descriptor, IPPROTO_TCP, TCP_NODELAY, &yes, sizeof yes);
}

TcpAddress own_address_of(int descriptor) {
  sockaddr_storage own{};
  socklen_t length = sizeof own;
  std::array<char, NI_MAXHOST> host{};
  std::array<char, NI_MAXSERV> port{};
  const auto* address = reinterpret_cast<const sockaddr*>(&own);
  if (::getsockname(descriptor, reinterpret_cast<sockaddr*>(&own), &length) != 0 ||
      ::getnameinfo(address, length, host.data(), host.size(), port.data(), port.size(),
                    NI_NUMERICHOST | NI_NUMERICSERV) != 0) {
    throw_socket_error("getsockname");
  }
  return {host.data(), parse_port(port.data()).value_or(0)};
}

}  // namespace ringlet::comm
