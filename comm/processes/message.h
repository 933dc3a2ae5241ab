// Message: what processes tell each other over a MessageSocket, and its bytes on the wire.
//
//   kind u8, 3 bytes of nothing, number i32, length of the key u32 | key | value
//
// Both ends run the same program on the same machine, so numbers are the machine's own.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

namespace ringlet::comm {

/// rendezvous.h says what the kinds mean.
struct Message {
  enum class Kind : std::uint8_t {
    hello,
    welcome,
    set,
    ask_status,
    abort,
    goodbye,
    farewell,
  };
  Kind kind = Kind::hello;
  std::int32_t number = 0;
  std::string key{};
  std::string value{};
};

/// What stands before key and value.
struct MessageHeader {
  Message::Kind kind;
  std::uint8_t nothing[3];  // zeros: no byte leaves this process that nobody wrote
  std::int32_t number;
  std::uint32_t key_bytes;
};

/// The header of `message`.
MessageHeader header_of(const Message& message);

/// Parses one packet. Nothing for bytes that are no message: too short, of an unknown kind, or with
/// a key that is longer than the packet.
std::optional<Message> parse_message(std::string_view bytes);

}  // namespace ringlet::comm
