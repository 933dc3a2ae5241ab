
#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <cmath>
#include <cstdint>
#include <set>
#include <sstream>
#include <string_view>
#include <vector>

#include "app/cli/settings.h"
#include "app/cli/usage.h"
#include "base/one_line.h"
#include "train/recipe/version.h"

namespace ringlet::app {

namespace {

/// Whether printing the number that `text` says gives `text` again.
template <class Number>
bool is_canonical(const std::string& text) {
  Number value{};
  const char* end = text.data() + text.size();
  const auto [stopped, error] = std::from_chars(text.data(), end, value);
  return error == std::errc() && stopped == end && fmt::format("{}", value) == text;
}

bool is_number(const std::string& text) {
  if (is_canonical<std::int64_t>(text)) return true;
  // TOML wants a digit before and behind the dot; "inf" and "nan" are texts.
  return text.find_first_not_of("0123456789.e+-") == std::string::npos &&
         text.find_first_of(".e") != std::string::npos && is_canonical<double>(text);
}

std::string toml_text(const std::string& text) {
  std::string out = "\"";
  for (const char c : text) {
    if (c == '"' || c == '\\') {
      out += '\\';
      out += c;
    } else if (static_cast<unsigned char>(c) < 0x20 || c == 0x7f) {
      out += fmt::format("\\u{:04X}", static_cast<unsigned>(c));
    } else {
      out += c;
    }
  }
  return printable(out + "\"");  // what else hides gets TOML's escapes too: \u202e
}

std::string literal(const CLI::Option& option, const std::string& text) {
  if (is_switch(option)) return text == "true" ? "true" : "false";
  return is_number(text) ? text : toml_text(text);
}

/// The value that was given; "true" for a flag whose value may be left out and was.
std::string given(const CLI::Option& option) {
  if (is_switch(option)) return option.as<bool>() ? "true" : "false";  // from CLI11 2.4 on counted
  const std::vector<std::string> results = option.reduced_results();
  if (option.get_items_expected_max() > 1) {
    std::vector<std::string> values;
    for (const std::string& result : results) values.push_back(toml_text(result));
    return fmt::format("[{}]", fmt::join(values, ", "));
  }
  const std::string value = results.empty() ? "" : results.front();
  if (option.get_expected_min() == 0 && value.empty()) return "true";
  return literal(option, value);
}

/// Whether a switch that was given says a value's part, as --no-normalize does of --normalize.
bool is_said_by_switch(const CLI::Option& option) {
  if (is_switch(option)) return false;
  const auto others = option.get_excludes();
  return std::any_of(others.begin(), others.end(), [](const CLI::Option* other) {
    return is_switch(*other) && other->count() > 0;
  });
}

/// Whether a configuration file keeps the flag. --no-nesterov is kept as nesterov = false, --no-out
/// only where it is given.
bool is_kept(const CLI::App& command, const CLI::Option& option) {
  static const std::set<std::string> kActs{"force", "resume"};
  const std::string key = key_of(option);
  const CLI::Option* opposite =
      key.starts_with("no-") ? command.get_option_no_throw("--" + key.substr(3)) : nullptr;
  if (opposite != nullptr && (is_switch(*opposite) || option.count() == 0)) return false;
  return can_be_set(option) && kActs.count(key) == 0;
}

/// `text` as comments of at most a hundred columns.
std::string comment(const std::string& text) {
  constexpr std::size_t kWidth = 100;
  std::string lines = "#";
  std::size_t column = 1;
  std::istringstream words(text);
  for (std::string word; words >> word; column += 1 + word.size()) {
    if (column > 1 && column + 1 + word.size() > kWidth) {
      lines += "\n#";
      column = 1;
    }
    lines += " " + word;
  }
  return lines + "\n";
}

using Said = std::set<const CLI::Option*>;  ///< what has a value in the file so far

/// Whether the file has, or gets, what excludes the option: it cannot have both.
bool is_replaced(const CLI::App& command, const CLI::Option& option, const Said& said) {
  const auto others = option.get_excludes();
  return option.count() == 0 &&
         std::any_of(others.begin(), others.end(), [&](const CLI::Option* other) {
           return said.contains(other) || (other->count() > 0 && is_kept(command, *other));
         });
}

/// The value that the file gives to the option; empty: none, as to a name that is not UTF-8, which
/// TOML has to be.
std::string value_of(const CLI::Option& option, const FlagValues& resolved) {
  const auto own = resolved.find(key_of(option));
  const auto& given_texts = option.results();
  if (!std::all_of(given_texts.begin(), given_texts.end(), is_utf8)) return "";
  if (own != resolved.end() && !is_said_by_switch(option)) return literal(option, own->second);
  if (option.count() > 0) return given(option);
  if (is_switch(option)) return "false";
  const std::string standard = option.get_default_str();
  return standard.empty() ? "" : literal(option, standard);
}

/// "lr = 0.1\n", or a comment.
std::string line_of(const CLI::App& command, const CLI::Option& option, const FlagValues& resolved,
                    Said& said) {
  const std::string key = key_of(option);
  if (is_replaced(command, option, said))
    return fmt::format("# {} is replaced by what is set\n", key);
  const std::string value = value_of(option, resolved);
  if (value.empty()) return fmt::format("# {} =\n", key);
  said.insert(&option);
  return fmt::format("{} = {}\n", key, value);
}

}  // namespace

std::string effective_config(const CLI::App& command, const FlagValues& resolved) {
  std::string text = fmt::format("# {0}, version {1}. Read it with: {0} --config FILE\n",
                                 full_name(command), train::kVersion);
  Said said;
  for (const std::string& group : command.get_groups()) {
    std::string lines;
    for (const CLI::Option* option : command.get_options()) {
      if (option->get_group() != group || !is_kept(command, *option)) continue;
      lines +=
          "\n" + comment(option->get_description()) + line_of(command, *option, resolved, said);
    }
    if (!lines.empty()) text += fmt::format("\n\n#### {}\n{}", group, lines);
  }
  return text;
}

}  // namespace ringlet::app
