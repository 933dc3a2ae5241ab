// A client of HTTP that sends any bytes: the whole answer of a server on the loopback.
#pragma once

#include <arpa/inet.h>
#include <netinet/in.h>
#include <poll.h>
#include <sys/socket.h>

#include <string>
#include <string_view>

#include "base/descriptor.h"

namespace ringlet::testing {

class HttpClient {
 public:
  explicit HttpClient(int port, in_addr_t address = INADDR_LOOPBACK)
      : socket_(::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0)) {
    sockaddr_in to{};
    to.sin_family = AF_INET;
    to.sin_port = htons(static_cast<std::uint16_t>(port));
    to.sin_addr.s_addr = htonl(address);
    connected_ = ::connect(socket_.get(), reinterpret_cast<sockaddr*>(&to), sizeof to) == 0;
  }
  bool connected() const { return connected_; }
  void send(std::string_view bytes) const {
    (void)!::send(socket_.get(), bytes.data(), bytes.size(), MSG_NOSIGNAL);
  }
  /// What comes until the server ends the connection, or for `seconds`.
  std::string receive(int seconds = 20) const {
    std::string answer;
    char bytes[4096];
    pollfd wait{socket_.get(), POLLIN, 0};
    while (::poll(&wait, 1, 1000 * seconds) > 0) {
      const ssize_t count = ::recv(socket_.get(), bytes, sizeof bytes, 0);
      if (count <= 0) break;
      answer.append(bytes, static_cast<std::size_t>(count));
    }
    return answer;
  }

 private:
  Descriptor socket_;
  bool connected_ = false;
};

/// The answer to a request as browsers make it.
inline std::string get(int port, const std::string& path, const std::string& method = "GET") {
  const HttpClient client(port);
  client.send(method + " " + path + " HTTP/1.1\r\nHost: 127.0.0.1:" + std::to_string(port) +
              "\r\nAccept: */*\r\n\r\n");
  return client.receive();
}

/// Behind the headers.
inline std::string body_of(const std::string& answer) {
  const auto end = answer.find("\r\n\r\n");
  return end == std::string::npos ? "" : answer.substr(end + 4);
}

}  // namespace ringlet::testing
