// Message: what processes tell each other over a MessageSocket, and its bytes on the wire.
//
//   kind u8, 3 bytes of nothing, number i32, length of the key u32 | key | value
//
// Both ends run the same program on the same machine, so numbers are the machine's own.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "comm/errors.h"

namespace ringlet::comm {

/// rendezvous.h says what the kinds mean.
struct Message {
  /// Longest key and value together, in bytes.
  static constexpr std::size_t kLongest = 60'000;

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

/// The abort that `process` speaks of. A cause that is too long for a message is cut here, the key
/// counted: wherever it goes from here, it fits.
Message abort_message(const RootCause& cause, int process);

/// The header of `message`.
MessageHeader header_of(const Message& message);

/// Parses one packet. Nothing for bytes that are no message: too short, of an unknown kind, or with
/// a key that is longer than the packet.
std::optional<Message> parse_message(std::string_view bytes);

}  // namespace ringlet::comm
