// Where process 0 of a run over several machines serves the others.
#pragma once

#include <optional>
#include <string>

namespace ringlet::comm {

struct TcpAddress {
  std::string host;  ///< a name or a number; of IPv6 without brackets
  int port = 0;      ///< 1 to 65535; 0 where the kernel shall choose one
  bool operator==(const TcpAddress&) const = default;
};

/// "HOST:PORT", of IPv6 "[HOST]:PORT". Nothing for any other text.
std::optional<TcpAddress> parse_address(const std::string& text);
/// A port from 1 to 65535. Nothing for any other text.
std::optional<int> parse_port(const std::string& text);
/// "tcp:HOST:PORT"
std::string text_of(const TcpAddress& address);
/// Whether the host is this machine whatever the machine: localhost, 127.0.0.1, ::1.
bool is_loopback(const std::string& host);

}  // namespace ringlet::comm
