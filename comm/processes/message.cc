#include "comm/processes/message.h"

#include <cstring>
#include <utility>

namespace ringlet::comm {

std::string shortened(const std::string& text, std::size_t longest) {
  constexpr std::string_view kMore = " ...";
  if (text.size() <= longest) return text;
  std::size_t end = longest - kMore.size();
  const auto inside_letter = [&] { return (static_cast<unsigned char>(text[end]) & 0xC0) == 0x80; };
  while (end > 0 && inside_letter()) --end;
  return text.substr(0, end).append(kMore);
}

Message abort_message(const RootCause& cause, int process) {
  std::string key = std::to_string(process);
  std::string value = shortened(cause.message, Message::kLongest - key.size());
  return {Message::Kind::abort, cause.rank, std::move(key), std::move(value)};
}

MessageHeader header_of(const Message& message) {
  return {message.kind, {}, message.number, static_cast<std::uint32_t>(message.key.size())};
}

std::string bytes_of(const Message& message) {
  const MessageHeader header = header_of(message);
  std::string bytes(sizeof header, '\0');
  std::memcpy(bytes.data(), &header, sizeof header);
  return bytes.append(message.key).append(message.value);
}

std::string frame_of(const Message& message) {
  const std::string bytes = bytes_of(message);
  const auto length = static_cast<std::uint32_t>(bytes.size());
  std::string frame(sizeof length, '\0');
  std::memcpy(frame.data(), &length, sizeof length);
  return frame + bytes;
}

std::optional<Message> parse_message(std::string_view bytes) {
  if (bytes.size() < sizeof(MessageHeader)) return {};
  // Read as a number: an unknown one must not become a Kind.
  std::uint8_t kind = 0;
  std::memcpy(&kind, bytes.data(), sizeof kind);
  if (kind > static_cast<std::uint8_t>(Message::Kind::status)) return {};
  MessageHeader header{};
  std::memcpy(&header, bytes.data(), sizeof header);
  bytes.remove_prefix(sizeof header);
  if (header.key_bytes > bytes.size()) return {};
  return Message{header.kind, header.number, std::string(bytes.substr(0, header.key_bytes)),
                 std::string(bytes.substr(header.key_bytes))};
}

}  // namespace ringlet::comm
