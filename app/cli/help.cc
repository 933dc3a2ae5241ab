#include "app/cli/help.h"

#include <fmt/format.h>

#include <map>
#include <sstream>

namespace ringlet::app {

namespace {

constexpr std::size_t kWidth = 100;
constexpr std::size_t kIndent = 2;
constexpr std::size_t kColumn = 34;  // where descriptions start

/// The words of `text`; what stands in brackets is one word.
std::vector<std::string> words_of(const std::string& text) {
  std::vector<std::string> words;
  std::istringstream stream(text);
  bool open = false;
  for (std::string word; stream >> word;) {
    if (open) {
      words.back() += " " + word;
    } else {
      words.push_back(word);
    }
    open = words.back().front() == '[' && words.back().back() != ']';
  }
  return words;
}

/// "-h, --help"
std::string names_of(const CLI::Option& option) {
  std::vector<std::string> names;
  for (const std::string& name : option.get_snames()) names.push_back("-" + name);
  for (const std::string& name : option.get_lnames()) names.push_back("--" + name);
  return fmt::format("{}", fmt::join(names, ", "));
}

/// " N": what stands for the value; nothing for a switch.
std::string value_of(const CLI::Option& option) {
  if (option.get_type_size() == 0) return "";
  const std::string type = option.get_type_name();
  static const std::map<std::string, std::string> kWords{
      {"INT", "N"}, {"UINT", "N"}, {"FLOAT", "X"}};
  const auto word = kWords.find(type.substr(0, type.find(':')));  // "INT:POSITIVE"
  return " " + (word == kWords.end() ? type : word->second);
}

}  // namespace

std::string help_row(const std::string& left, const std::string& right, std::size_t column) {
  std::string text = std::string(kIndent, ' ') + left;
  std::size_t at = text.size();
  const auto new_line = [&] {
    text += "\n";
    at = 0;
  };
  if (at + 2 > column) new_line();
  for (const std::string& word : words_of(right)) {
    if (at >= column && at + 1 + word.size() > kWidth) new_line();
    const std::size_t blanks = at < column ? column - at : 1;
    text.append(blanks, ' ').append(word);
    at += blanks + word.size();
  }
  return text + "\n";
}

std::string HelpFormatter::make_description(const CLI::App* app) const {
  return app->get_description() + "\n\n";
}

std::string HelpFormatter::make_usage(const CLI::App* app, std::string name) const {
  const bool has_commands = !app->get_subcommands([](const CLI::App*) { return true; }).empty();
  for (const CLI::Option* option : app->get_options()) {
    if (option->get_positional())
      return fmt::format("usage: {} [FLAGS] {}\n\n", name, option->get_type_name());
  }
  return fmt::format(
      "usage: {} {}\n\n", name,
      has_commands ? "COMMAND [FLAGS]   (COMMAND --help lists its flags)" : "[FLAGS]");
}

std::string HelpFormatter::make_group(std::string group, bool is_positional,
                                      std::vector<const CLI::Option*> options) const {
  std::string text = (is_positional ? "Arguments" : group) + ":\n";
  for (const CLI::Option* option : options) text += make_option(option, is_positional);
  return is_positional ? text + "\n" : text;
}

std::string HelpFormatter::make_option(const CLI::Option* option, bool is_positional) const {
  std::string right = option->get_description();
  if (option->get_type_size() > 0 && !option->get_default_str().empty()) {
    right += " [" + option->get_default_str() + "]";
  }
  if (option->get_required()) right += " (required)";
  return help_row(is_positional ? option->get_type_name() : names_of(*option) + value_of(*option),
                  right, kColumn);
}

std::string HelpFormatter::make_subcommand(const CLI::App* sub) const {
  return help_row(sub->get_name(), sub->get_description(), kColumn);
}

}  // namespace ringlet::app
