#include "app/report/short_names.h"

#include <algorithm>
#include <array>
#include <map>
#include <set>
#include <string_view>

namespace ringlet::app::report {

namespace {

constexpr char kLeftOut[] = "\u2026";

bool begins_letter(char byte) { return (static_cast<unsigned char>(byte) & 0xC0) != 0x80; }

/// Whether the letter, in UTF-8, is one of those that take two columns.
bool is_wide(std::string_view letter) {
  if (letter.size() < 3) return false;
  char32_t code = static_cast<unsigned char>(letter[0]) & (letter.size() == 3 ? 0x0F : 0x07);
  for (const char byte : letter.substr(1)) {
    code = code << 6 | (static_cast<unsigned char>(byte) & 0x3F);
  }
  struct Range {
    char32_t first, last;
  };
  constexpr std::array<Range, 8> kWide{{{0x1100, 0x115F},
                                        {0x2E80, 0xA4CF},
                                        {0xAC00, 0xD7A3},
                                        {0xF900, 0xFAFF},
                                        {0xFE30, 0xFE6F},
                                        {0xFF00, 0xFF60},
                                        {0x1F300, 0x1FAFF},
                                        {0x20000, 0x3FFFD}}};
  return std::ranges::any_of(
      kWide, [&](const Range& range) { return range.first <= code && code <= range.last; });
}

std::size_t columns_of_letter(std::string_view letter) { return is_wide(letter) ? 2 : 1; }

/// Views into the text.
std::vector<std::string_view> letters_of(std::string_view text) {
  std::vector<std::string_view> letters;
  for (std::size_t begin = 0, end = 0; begin < text.size(); begin = end) {
    end = begin + 1;
    while (end < text.size() && !begins_letter(text[end])) ++end;
    letters.push_back(text.substr(begin, end - begin));
  }
  return letters;
}

/// How many bytes as many of the letters have as take `columns` at most.
template <class Letters>
std::size_t bytes_within(const Letters& letters, std::size_t columns) {
  std::size_t bytes = 0;
  for (const std::string_view letter : letters) {
    if (columns_of_letter(letter) > columns) break;
    columns -= columns_of_letter(letter);
    bytes += letter.size();
  }
  return bytes;
}

bool ends_word(char byte) { return std::string_view("-_/, ").find(byte) != std::string_view::npos; }

/// What of the names stands between what they begin and end with alike. Whole words are left out
/// where they begin and end with words.
struct Middle {
  std::size_t front = 0, back = 0;  // bytes
  explicit Middle(const std::set<std::string>& names);
  std::string of(const std::string& name, std::size_t columns) const;
};

Middle::Middle(const std::set<std::string>& names) {
  const std::string& first = *names.begin();
  std::size_t least = first.size();
  for (const std::string& name : names) least = std::min(least, name.size());
  const auto all = [&](auto same) { return std::ranges::all_of(names, same); };
  while (front < least && all([&](const std::string& name) { return name[front] == first[front]; }))
    ++front;
  const auto from_end = [](const std::string& name, std::size_t i) {
    return name[name.size() - 1 - i];
  };
  while (back < least - front && all([&](const std::string& name) {
           return from_end(name, back) == from_end(first, back);
         }))
    ++back;
  std::size_t word = front;
  while (word > 0 && !ends_word(first[word - 1])) --word;
  if (word > 0) front = word;
  while (front > 0 && front < first.size() && !begins_letter(first[front])) --front;
  for (word = back; word > 0 && !ends_word(from_end(first, word - 1));) --word;
  if (word > 0) back = word;
  while (back > 0 && !begins_letter(first[first.size() - back])) --back;
}

std::string Middle::of(const std::string& name, std::size_t columns) const {
  const std::string middle = name.substr(front, name.size() - front - back);
  if (middle.empty()) return shortened(name, columns);
  const std::string marked = (front > 0 ? kLeftOut : "") + middle + (back > 0 ? kLeftOut : "");
  return columns_of(marked) <= columns ? marked : shortened(middle, columns);
}

}  // namespace

std::size_t columns_of(const std::string& text) {
  std::size_t columns = 0;
  for (const std::string_view letter : letters_of(text)) columns += columns_of_letter(letter);
  return columns;
}

double width_of(const std::string& text) {
  constexpr double kLetter = 7.4, kCapital = 9.6;
  constexpr double kBroad = 13;  // m, w and the like, and those of two columns
  double width = 0;
  for (const std::string_view letter : letters_of(text)) {
    const char c = letter.front();
    const bool broad =
        is_wide(letter) || std::string_view("mwMW@%").find(c) != std::string_view::npos;
    width += broad ? kBroad : c >= 'A' && c <= 'Z' ? kCapital : kLetter;
  }
  return width;
}

std::string shortened(const std::string& name, std::size_t columns) {
  if (columns_of(name) <= columns) return name;
  const std::vector<std::string_view> letters = letters_of(name);
  const std::size_t tail = columns / 2, head = columns - 1 - tail;
  const std::size_t back = bytes_within(std::vector(letters.rbegin(), letters.rend()), tail);
  return name.substr(0, bytes_within(letters, head)) + kLeftOut + name.substr(name.size() - back);
}

std::vector<std::string> shortened(const std::vector<std::string>& names, std::size_t columns) {
  std::map<std::string, std::set<std::string>> alike;
  for (const std::string& name : names) alike[shortened(name, columns)].insert(name);
  std::vector<std::string> all;
  for (const std::string& name : names) {
    const std::string text = shortened(name, columns);
    const std::set<std::string>& same = alike[text];
    all.push_back(same.size() > 1 ? Middle(same).of(name, columns) : text);
  }
  return all;
}

}  // namespace ringlet::app::report
