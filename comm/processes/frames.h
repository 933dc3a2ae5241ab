// Frames: the messages in a stream of bytes, which comes in pieces of any length (message.h). It
// holds what has come of the next one, and never more than a message may be long and one piece.
#pragma once

#include <cstddef>
#include <optional>
#include <string>
#include <string_view>

#include "comm/processes/message.h"

namespace ringlet::comm {

class Frames {
 public:
  /// What a stranger may send before anybody knows who it is.
  static constexpr std::size_t kLongestOfStranger = 16'000;

  /// The longest message from now on, in bytes with its header.
  void set_longest(std::size_t bytes) { longest_ = bytes; }
  /// Adds what has come. Then next() is to be called until it gives nothing.
  void add(std::string_view bytes) {
    if (!broken_) waiting_.append(bytes);
  }
  /// The next message that is whole; nothing where there is none yet, and once is_broken().
  std::optional<Message> next();
  /// Whether something came that is no frame. Nobody knows then where the next one begins.
  bool is_broken() const { return broken_; }

 private:
  std::size_t longest_ = sizeof(MessageHeader) + Message::kLongest;
  std::string waiting_;
  bool broken_ = false;
};

}  // namespace ringlet::comm
