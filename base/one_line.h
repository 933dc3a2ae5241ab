// Text from outside on its way out: into messages, onto terminals and pages.
//
// A name, a flag's value or a file can hold anything: a letter that commands a terminal, a line
// feed that begins a false second message, letters that turn the order of what follows, bytes that
// are no UTF-8, a hundred megabytes.
//
//   Köln        what is printable stays as it is, a backslash too: to escape twice does no harm
//   \n \t       line feed, tab
//   \x1b        another control character of ASCII, or a byte that is not UTF-8
//   \u202e      a character that commands terminals (U+0080 to U+009F) or orders, hides or breaks
//               text without being seen
//   ...         what is too long has lost its middle: a message begins with the thing and ends with
//               the remedy
#pragma once

#include <cstddef>
#include <string>
#include <string_view>

namespace ringlet {

/// Bytes of the longest line: a message on what 32 ranks last did has room.
inline constexpr std::size_t kLongestLine = 4000;

/// `text` as one printable line of at most `longest` bytes.
std::string on_one_line(std::string_view text, std::size_t longest = kLongestLine);

/// Whether `text` is UTF-8 from its beginning to its end, as JSON has to be.
bool is_utf8(std::string_view text);

/// `text` with its line feeds and tabs, at any length; the rest is escaped.
std::string printable(std::string_view text);

}  // namespace ringlet
