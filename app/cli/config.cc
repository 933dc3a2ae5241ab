#include "app/cli/config.h"

#include <fmt/format.h>
// Some assertions of toml++ fail where a text is merely wrong ("[(a]"); an error follows each of
// them.
#define TOML_ASSERT(expression) static_cast<void>(0)
#include <toml++/toml.h>

#include <algorithm>
#include <cmath>

#include "base/one_line.h"

namespace ringlet::app {

namespace {

/// Every dot may be a level of tables, which toml++ takes apart by recursion.
constexpr std::ptrdiff_t kMaxDots = 4096;

[[noreturn]] void fail(const std::string& source, std::int64_t line, const std::string& what) {
  constexpr std::size_t kLongest = 1000;  // a key may have the file's 64 KiB
  throw ConfigError(fmt::format("{}:{}: {}", source, line, on_one_line(what, kLongest)));
}

/// Follows a line outside of its texts: KEY = TEXT, KEY = [TEXT, TEXT, and what goes on with a
/// list.
class LineShape {
 public:
  bool is_plain() const { return plain_; }
  void next_line() {
    key_ = equals_ = false;
    plain_ = true;
  }
  void see(char c) {
    const bool bare = (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') ||
                      c == '-' || c == '_';
    const bool in_value = equals_ || lists_ > 0 || !key_;
    if (c == ' ' || c == '\t' || c == '\r') return;
    if (c == '=' && key_ && !equals_ && lists_ == 0) {
      equals_ = true;
    } else if (bare && !equals_ && lists_ == 0) {
      key_ = true;
    } else if (in_value && (c == '[' || c == ']')) {
      lists_ = std::max(0, lists_ + (c == '[' ? 1 : -1));
    } else if (!in_value || (c != ',' && c != '"' && c != '\'')) {
      plain_ = false;
    }
  }

 private:
  bool key_ = false, equals_ = false, plain_ = true;  // of the line
  int lists_ = 0;                                     // that are open
};

/// toml++ 3.3 looks for blanks in a way that is undefined behaviour for the letters U+00A1 to
/// U+0499. TOML allows such letters in texts and comments only. So they are refused elsewhere, and
/// wherever toml++ may take something else for the text. Texts of several lines are refused too,
/// since toml++ looks for blanks in them as well.
void check_letters(std::string_view text, const std::string& source) {
  constexpr std::string_view kByteOrderMark = "\xEF\xBB\xBF";
  LineShape shape;
  std::int64_t line = 1;
  char quote = 0;  // that a text is in; '#' for a comment; 0 for neither
  for (std::size_t i = text.starts_with(kByteOrderMark) ? 3 : 0; i < text.size(); ++i) {
    const char c = text[i];
    if (c == '\n') {
      ++line;
      quote = 0;
      shape.next_line();
    } else if (static_cast<unsigned char>(c) >= 0x80) {
      if (quote == '#' || (quote != 0 && shape.is_plain())) continue;
      fail(source, line, "not TOML: letters that are not ASCII stand in quotes");
    } else if (quote == '"' && c == '\\' && text.substr(i + 1, 1) != "\n") {
      i += i + 1 < text.size() && static_cast<unsigned char>(text[i + 1]) < 0x80 ? 1 : 0;
    } else if (quote != 0) {
      if (c == quote && quote != '#') quote = 0;
    } else {
      if (c != '#') shape.see(c);
      if (c != '"' && c != '\'' && c != '#') continue;
      quote = c;
      if (c != '#' && text.substr(i, 3) == std::string(3, c)) {
        fail(source, line, "texts of several lines are in no configuration; write it on one");
      }
    }
  }
}

/// The type of a value, in the user's words.
std::string_view name_of(toml::node_type type) {
  switch (type) {
    case toml::node_type::table:
      return "a table";
    case toml::node_type::array:
      return "a list";
    default:
      return "a date or time";
  }
}

class Reader {
 public:
  explicit Reader(const std::string& source) : source_(source) {}

  ConfigEntry entry(const std::string& key, const toml::node& node) const {
    const std::int64_t line = node.source().begin.line;
    ConfigEntry entry;
    entry.key = key;
    entry.line = line;
    if (node.is_table()) {
      fail(source_, line,
           fmt::format("'{}' is a table; write flags at the top, each as KEY = VALUE", key));
    }
    if (node.is_boolean()) entry.kind = ConfigEntry::Kind::boolean;
    if (const toml::array* list = node.as_array()) {
      entry.kind = ConfigEntry::Kind::list;
      for (const toml::node& element : *list) entry.values.push_back(text_of(key, element));
    } else {
      entry.values.push_back(text_of(key, node));
    }
    return entry;
  }

 private:
  /// The value as the command line would write it.
  std::string text_of(const std::string& key, const toml::node& node) const {
    if (const auto* text = node.as_string()) return printable(key, node, text->get());
    if (const auto* whole = node.as_integer()) return fmt::format("{}", whole->get());
    if (const auto* number = node.as_floating_point()) return fmt::format("{}", number->get());
    if (const auto* truth = node.as_boolean()) return truth->get() ? "true" : "false";
    fail(source_, node.source().begin.line,
         fmt::format(
             "{}: a value is a text, a number, true or false, or a list of these, and not {}", key,
             name_of(node.type())));
  }

  /// Refuses a zero byte, which a command line could not hold either.
  const std::string& printable(const std::string& key, const toml::node& node,
                               const std::string& text) const {
    if (text.find('\0') == std::string::npos) return text;
    fail(source_, node.source().begin.line, fmt::format("{}: the text holds a zero byte", key));
  }

  const std::string& source_;
};

}  // namespace

std::vector<ConfigEntry> parse_config(std::string_view text, const std::string& source) {
  if (text.size() > kMaxConfigBytes) {
    throw ConfigError(
        fmt::format("{}: a configuration has at most {} bytes", source, kMaxConfigBytes));
  }
  if (std::count(text.begin(), text.end(), '.') > kMaxDots) {
    throw ConfigError(
        fmt::format("{}: more than {} dots are in no configuration", source, kMaxDots));
  }
  check_letters(text, source);
  toml::table table;
  try {
    table = toml::parse(text, std::string_view(source));
  } catch (const toml::parse_error& error) {
    fail(source, error.source().begin.line, fmt::format("not TOML: {}", error.description()));
  }
  std::vector<ConfigEntry> entries;
  const Reader reader(source);
  for (const auto& [key, node] : table) {
    entries.push_back(reader.entry(std::string(key.str()), node));
  }
  std::stable_sort(entries.begin(), entries.end(),
                   [](const auto& a, const auto& b) { return a.line < b.line; });
  return entries;
}

}  // namespace ringlet::app
