#include "comm/processes/tcp_address.h"

#include <charconv>

namespace ringlet::comm {

std::optional<int> parse_port(const std::string& text) {
  constexpr int kLast = 65535;
  int port = 0;
  const char* end = text.data() + text.size();
  const auto [stopped, error] = std::from_chars(text.data(), end, port);
  if (error != std::errc() || stopped != end || port < 1 || port > kLast) return {};
  return port;
}

std::optional<TcpAddress> parse_address(const std::string& text) {
  const std::size_t colon = text.rfind(':');
  if (colon == std::string::npos || colon == 0) return {};
  const std::optional<int> port = parse_port(text.substr(colon + 1));
  std::string host = text.substr(0, colon);
  const bool in_brackets = host.starts_with('[') && host.ends_with(']');
  if (in_brackets) host = host.substr(1, host.size() - 2);
  if (!port || host.empty() || (!in_brackets && host.find(':') != std::string::npos)) return {};
  return TcpAddress{host, *port};
}

std::string text_of(const TcpAddress& address) {
  const bool has_colons = address.host.find(':') != std::string::npos;
  const std::string host = has_colons ? "[" + address.host + "]" : address.host;
  return "tcp:" + host + ":" + std::to_string(address.port);
}

bool is_loopback(const std::string& host) {
  return host == "localhost" || host.starts_with("127.") || host == "::1";
}

}  // namespace ringlet::comm
