#include "base/one_line.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>

namespace ringlet {

namespace {

struct Character {
  char32_t code = 0;
  std::size_t bytes = 0;  // 0: no UTF-8
};

/// The character at the beginning of `text`, which is not empty. Strict: no overlong forms, no
/// surrogates.
Character first_of(std::string_view text) {
  constexpr std::array<char32_t, 5> kLeast{0, 0, 0x80, 0x800, 0x10000};  // by the number of bytes
  constexpr char32_t kMost = 0x10FFFF, kSurrogates = 0xD800, kLastSurrogate = 0xDFFF;
  const auto byte = [&](std::size_t i) { return static_cast<unsigned char>(text[i]); };
  const unsigned lead = byte(0);
  if (lead < 0x80) return {lead, 1};
  const std::size_t bytes = lead >= 0xF0 ? 4 : lead >= 0xE0 ? 3 : 2;
  if (lead < 0xC0 || lead > 0xF7 || bytes > text.size()) return {};
  char32_t code = lead & (0xFFU >> (bytes + 1));
  for (std::size_t i = 1; i < bytes; ++i) {
    if ((byte(i) & 0xC0U) != 0x80) return {};
    code = code << 6 | (byte(i) & 0x3FU);
  }
  const bool surrogate = code >= kSurrogates && code <= kLastSurrogate;
  if (code < kLeast[bytes] || code > kMost || surrogate) return {};
  return {code, bytes};
}

/// Whether a character does something else than being seen.
bool is_hidden(char32_t code) {
  struct Range {
    char32_t first, last;
  };
  static constexpr std::array kHidden{
      Range{0x00, 0x1F},        // control characters of ASCII
      Range{0x7F, 0x9F},        // delete, and the control characters of ISO 6429
      Range{0x061C, 0x061C},    // the Arabic letter's mark
      Range{0x200B, 0x200B},    // a blank without width
      Range{0x200E, 0x200F},    // marks of direction
      Range{0x2028, 0x202E},    // ends of lines and paragraphs; embeddings and overrides
      Range{0x2060, 0x206F},    // invisible operators; isolates
      Range{0xFEFF, 0xFEFF},    // the byte order mark
      Range{0xFFF9, 0xFFFB},    // annotations between lines
      Range{0xE0000, 0xE0FFF},  // tags
  };
  return std::any_of(kHidden.begin(), kHidden.end(),
                     [code](Range range) { return code >= range.first && code <= range.last; });
}

std::string in_letters(char32_t code) {
  if (code == '\n') return "\\n";
  if (code == '\t') return "\\t";
  const auto number = static_cast<std::uint32_t>(code);
  if (code < 0x80) return fmt::format("\\x{:02x}", number);
  return code <= 0xFFFF ? fmt::format("\\u{:04x}", number) : fmt::format("\\U{:08x}", number);
}

std::string escaped(std::string_view text, std::string_view kept) {
  std::string result;
  while (!text.empty()) {
    const Character character = first_of(text);
    const std::size_t bytes = std::max<std::size_t>(1, character.bytes);
    if (character.bytes == 0) {
      result += fmt::format("\\x{:02x}", static_cast<unsigned char>(text.front()));
    } else if (is_hidden(character.code) && kept.find(text.front()) == kept.npos) {
      result += in_letters(character.code);
    } else {
      result += text.substr(0, bytes);
    }
    text.remove_prefix(bytes);
  }
  return result;
}

bool goes_on(char c) { return (static_cast<unsigned char>(c) & 0xC0U) == 0x80; }

}  // namespace

std::string on_one_line(std::string_view text, std::size_t longest) {
  constexpr std::string_view kGap = "...";
  // No character becomes shorter, so the middle of a huge text need not be looked at.
  std::string line = text.size() <= longest ? escaped(text, "")
                                            : escaped(text.substr(0, longest), "") +
                                                  escaped(text.substr(text.size() - longest), "");
  if (line.size() <= longest) return line;
  std::size_t head = (longest - kGap.size()) / 2, tail = line.size() - head;
  while (head > 0 && goes_on(line[head])) --head;
  while (tail < line.size() && goes_on(line[tail])) ++tail;
  return line.substr(0, head).append(kGap).append(line, tail);
}

bool is_utf8(std::string_view text) {
  while (!text.empty()) {
    const std::size_t bytes = first_of(text).bytes;
    if (bytes == 0) return false;
    text.remove_prefix(bytes);
  }
  return true;
}

std::string printable(std::string_view text) { return escaped(text, "\n\t"); }

}  // namespace ringlet
