#include "train/cli/config.h"

#include <fmt/format.h>
#include <toml++/toml.h>

#include <algorithm>
#include <cmath>

namespace ringlet::train {

namespace {

/// Every dot may be a level of tables, which toml++ takes apart by recursion.
constexpr std::ptrdiff_t kMaxDots = 4096;

[[noreturn]] void fail(const std::string& source, std::int64_t line, const std::string& what) {
  throw ConfigError(fmt::format("{}:{}: {}", source, line, what));
}

/// What stands in the place of a value, in the user's words.
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
  /// As the command line would say it.
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

  /// What a command line could not hold either.
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

}  // namespace ringlet::train
