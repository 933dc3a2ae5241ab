#include "app/report/html.h"

#include <array>
#include <cstddef>
#include <cstdint>

namespace ringlet::app::report {

namespace {

/// Bytes of the UTF-8 character at the start of `text`; 0 if there is none.
std::size_t character_length(std::string_view text) {
  const auto byte = [&](std::size_t i) { return static_cast<unsigned char>(text[i]); };
  std::size_t length = 0;
  if (byte(0) < 0x80) length = 1;
  if (byte(0) >= 0xC2 && byte(0) <= 0xDF) length = 2;
  if (byte(0) >= 0xE0 && byte(0) <= 0xEF) length = 3;
  if (byte(0) >= 0xF0 && byte(0) <= 0xF4) length = 4;
  if (length > text.size()) return 0;
  for (std::size_t i = 1; i < length; ++i) {
    if ((byte(i) & 0xC0) != 0x80) return 0;
  }
  return length;
}

std::string_view entity(char c) {
  switch (c) {
    case '&':
      return "&amp;";
    case '<':
      return "&lt;";
    case '>':
      return "&gt;";
    case '"':
      return "&quot;";
    case '\'':
      return "&#39;";
    default:
      return {};
  }
}

}  // namespace

std::string escaped(std::string_view text) {
  std::string result;
  while (!text.empty()) {
    const std::size_t length = character_length(text);
    const auto first = static_cast<unsigned char>(text.front());
    const bool control = (first < ' ' && first != '\n' && first != '\t') || first == 0x7F;
    if (length == 0) {
      result += '?';
    } else if (control) {
      result += ' ';
    } else if (const std::string_view word = entity(text.front()); !word.empty()) {
      result += word;
    } else {
      result += text.substr(0, length);
    }
    text.remove_prefix(length == 0 ? 1 : length);
  }
  return result;
}

std::string folded(std::string_view title, std::string_view html) {
  std::string text = "<details><summary>" + escaped(title) + "</summary>\n";
  return text.append(html) + "</details>\n";
}

std::string data_uri(std::string_view type, std::string_view bytes) {
  constexpr std::string_view kDigits =
      "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
  std::string uri = "data:";
  uri.append(type).append(";base64,");
  for (std::size_t i = 0; i < bytes.size(); i += 3) {
    const std::size_t count = bytes.size() - i < 3 ? bytes.size() - i : 3;
    std::uint32_t three = 0;
    for (std::size_t k = 0; k < 3; ++k) {
      three = three << 8 | (k < count ? static_cast<unsigned char>(bytes[i + k]) : 0U);
    }
    for (std::size_t k = 0; k < 4; ++k) {
      uri += k <= count ? kDigits[three >> (6 * (3 - k)) & 63] : '=';
    }
  }
  return uri;
}

}  // namespace ringlet::app::report
