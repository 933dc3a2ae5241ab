// Message: what processes tell each other over a MessageSocket, and its bytes on the wire.
//
//   kind u8, 3 bytes of nothing, number i32, length of the key u32 | key | value
//
// A stream of bytes (TCP) does not keep messages whole. There each is a frame: its length in bytes,
// u32, and then the above.
//
// Both ends run the same program, so numbers are the machine's own. Between machines of another
// order of bytes the first frame has a length that no message has, and the connection ends.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "comm/core/errors.h"

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
    beat,  ///< nothing but a sign of life, over TCP
    clock,
    challenge,
    proof,
    status,  ///< the last of them (parse_message())
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

/// At most `longest` bytes of a text, none of its letters in part (UTF-8).
std::string shortened(const std::string& text, std::size_t longest);

/// The abort that `process` speaks of. A cause that is too long for a message is cut here, the key
/// counted: wherever it goes from here, it fits.
Message abort_message(const RootCause& cause, int process);

/// The header of `message`.
MessageHeader header_of(const Message& message);

/// Header, key and value, one after the other.
std::string bytes_of(const Message& message);
/// The same as a frame.
std::string frame_of(const Message& message);

/// Parses one packet, or a frame behind its length. Nothing for bytes that are no message: too
/// short, of an unknown kind, or with a key that is longer than the packet.
std::optional<Message> parse_message(std::string_view bytes);

}  // namespace ringlet::comm
