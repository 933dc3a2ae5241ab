#include "tests/cuda_stand_in/ptx/text.h"

#include <fmt/format.h>

#include <algorithm>
#include <cctype>
#include <charconv>
#include <stdexcept>

namespace ringlet::ptx {

void unknown(std::string_view what) {
  throw std::invalid_argument(fmt::format("PTX that is not known here: {}", what));
}

std::string_view trimmed(std::string_view text) {
  const auto is_blank = [](char c) { return std::isspace(static_cast<unsigned char>(c)) != 0; };
  while (!text.empty() && is_blank(text.front())) text.remove_prefix(1);
  while (!text.empty() && is_blank(text.back())) text.remove_suffix(1);
  return text;
}

std::vector<std::string_view> list_of(std::string_view text) {
  std::vector<std::string_view> items;
  std::size_t begin = 0;
  int depth = 0;
  for (std::size_t i = 0; i <= text.size(); ++i) {
    if (i < text.size()) {
      depth += text[i] == '{' || text[i] == '[';
      depth -= text[i] == '}' || text[i] == ']';
    }
    if (i != text.size() && (text[i] != ',' || depth > 0)) continue;
    const std::string_view item = trimmed(text.substr(begin, i - begin));
    if (!item.empty()) items.push_back(item);
    begin = i + 1;
  }
  return items;
}

std::int64_t integer_of(std::string_view text) {
  const bool negative = text.starts_with('-');
  if (negative) text.remove_prefix(1);
  const int base = text.starts_with("0x") ? 16 : 10;
  if (base == 16) text.remove_prefix(2);
  std::uint64_t value = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value, base);
  if (error != std::errc() || (end != text.data() + text.size() && *end != 'U')) unknown(text);
  return static_cast<std::int64_t>(negative ? -value : value);
}

bool is_number(std::string_view text) {
  return text.starts_with('-') || std::isdigit(static_cast<unsigned char>(text[0])) != 0;
}

std::uint64_t bits_of(std::string_view text) {
  if (text.size() < 2 || (text[1] != 'f' && text[1] != 'F' && text[1] != 'd' && text[1] != 'D')) {
    return static_cast<std::uint64_t>(integer_of(text));
  }
  std::uint64_t bits = 0;
  std::from_chars(text.data() + 2, text.data() + text.size(), bits, 16);
  return bits;
}

std::vector<std::string_view> parts_of(std::string_view opcode) {
  std::vector<std::string_view> parts;
  for (std::size_t begin = 0; begin <= opcode.size();) {
    const std::size_t end = std::min(opcode.find('.', begin), opcode.size());
    parts.push_back(opcode.substr(begin, end - begin));
    begin = end + 1;
  }
  return parts;
}

int width_of(std::string_view type) {
  if (type == "pred" || type.ends_with("8")) return 1;
  if (type.ends_with("16")) return 2;
  return type.ends_with("32") ? 4 : 8;
}

Variable variable_of(std::string_view text) {
  int width = 0, alignment = 0;
  while (text.starts_with('.')) {
    const std::size_t end = std::min(text.find_first_of(" \t"), text.size());
    const std::string_view word = text.substr(1, end - 1);
    text = trimmed(text.substr(end));
    if (word == "align") {
      const std::size_t number = std::min(text.find_first_of(" \t"), text.size());
      alignment = static_cast<int>(integer_of(text.substr(0, number)));
      text = trimmed(text.substr(number));
    } else if (word != "param" && word != "shared") {
      width = width_of(word);
    }
  }
  if (alignment == 0) alignment = width;
  const std::size_t bracket = text.find('[');
  if (bracket == std::string_view::npos) return {text, width, alignment};
  const std::size_t close = text.find(']');
  const auto count = static_cast<int>(integer_of(text.substr(bracket + 1, close - bracket - 1)));
  return {text.substr(0, bracket), width * count, alignment};
}

Operand operand_of(std::string_view text) {
  if (text.starts_with('{')) return {list_of(text.substr(1, text.size() - 2))};
  if (!text.starts_with('[')) return {{text}};
  text = text.substr(1, text.size() - 2);
  const std::size_t plus = text.find('+');
  Operand operand{{trimmed(text.substr(0, plus))}, 0, true};
  if (plus != std::string_view::npos) operand.offset = integer_of(trimmed(text.substr(plus + 1)));
  return operand;
}

}  // namespace ringlet::ptx
