#include "comm/processes/message.h"

#include <cstring>

namespace ringlet::comm {

MessageHeader header_of(const Message& message) {
  return {message.kind, {}, message.number, static_cast<std::uint32_t>(message.key.size())};
}

std::optional<Message> parse_message(std::string_view bytes) {
  if (bytes.size() < sizeof(MessageHeader)) return {};
  // Read as a number: an unknown one must not become a Kind.
  std::uint8_t kind = 0;
  std::memcpy(&kind, bytes.data(), sizeof kind);
  if (kind > static_cast<std::uint8_t>(Message::Kind::farewell)) return {};
  MessageHeader header{};
  std::memcpy(&header, bytes.data(), sizeof header);
  bytes.remove_prefix(sizeof header);
  if (header.key_bytes > bytes.size()) return {};
  return Message{header.kind, header.number, std::string(bytes.substr(0, header.key_bytes)),
                 std::string(bytes.substr(header.key_bytes))};
}

}  // namespace ringlet::comm
