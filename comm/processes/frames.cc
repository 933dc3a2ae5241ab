#include "comm/processes/frames.h"

#include <cstdint>
#include <cstring>

namespace ringlet::comm {

std::optional<Message> Frames::next() {
  std::uint32_t length = 0;
  if (broken_ || waiting_.size() < sizeof length) return {};
  std::memcpy(&length, waiting_.data(), sizeof length);
  if (length < sizeof(MessageHeader) || length > longest_) {
    broken_ = true;
    return {};
  }
  if (waiting_.size() - sizeof length < length) return {};
  auto message = parse_message(std::string_view(waiting_).substr(sizeof length, length));
  waiting_.erase(0, sizeof length + length);
  broken_ = !message;
  return message;
}

}  // namespace ringlet::comm
