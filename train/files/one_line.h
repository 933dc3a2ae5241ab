// Text from outside in messages and on terminals.
#pragma once

#include <string>
#include <string_view>

namespace ringlet::train {

/// `text` with control characters written as in C: names from files do not break a message's one
/// line, and do not command a terminal. The rest stays as it is.
inline std::string on_one_line(std::string_view text) {
  constexpr std::string_view kDigits = "0123456789abcdef";
  constexpr unsigned char kDelete = 0x7F;
  std::string line;
  for (const char c : text) {
    const auto byte = static_cast<unsigned char>(c);
    if (c == '\n') {
      line += "\\n";
    } else if (c == '\t') {
      line += "\\t";
    } else if (byte < ' ' || byte == kDelete) {
      line.append("\\x").append({kDigits[byte >> 4], kDigits[byte & 0xF]});
    } else {
      line += c;
    }
  }
  return line;
}

}  // namespace ringlet::train
