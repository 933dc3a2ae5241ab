#include <fmt/format.h>

#include <string_view>

#include "app/cli/checks.h"
#include "app/cli/error_exit.h"
#include "app/cli/settings.h"

namespace ringlet::app {

namespace {

void require_entries(const std::string& origin, const std::string& text, char delimiter) {
  const bool is_list = delimiter != '\0' && !text.empty();
  const std::string twice(2, delimiter);
  if (is_list && (text.front() == delimiter || text.back() == delimiter ||
                  text.find(twice) != std::string::npos)) {
    throw UsageError(
        fmt::format("{}: '{}' has an empty entry; write one between two commas", origin, text));
  }
  if (!text.empty()) return;
  throw UsageError(fmt::format(
      "{} is empty; give a value or leave it out (is a variable of the shell not set?)", origin));
}

/// What separates the entries of a flag's value, in any command; 0 for one that takes no list.
char delimiter_of(const CLI::App& app, const std::string& flag) {
  const CLI::Option* option = app.get_option_no_throw(flag);
  if (option != nullptr && option->get_delimiter() != '\0') return option->get_delimiter();
  for (const CLI::App* command : app.get_subcommands([](const CLI::App*) { return true; })) {
    if (const char found = delimiter_of(*command, flag); found != '\0') return found;
  }
  return '\0';
}

/// The command of this name in `app`, or `app`.
const CLI::App& below(const CLI::App& app, const std::string& name) {
  for (const CLI::App* command : app.get_subcommands([](const CLI::App*) { return true; })) {
    if (command->get_name() == name) return *command;
  }
  return app;
}

/// CLI11 would take some values of a switch, and convert others to a number.
void require_no_switch(const CLI::App& command, const std::string& flag) {
  const CLI::Option* option = command.get_option_no_throw(flag);
  if (option == nullptr || !is_switch(*option)) return;
  throw UsageError(flag + " is a switch: it takes no value");
}

}  // namespace

void require_value(const CLI::Option& option, const std::string& origin, const std::string& text) {
  require_entries(origin, text, option.get_delimiter());
}

void require_values(const CLI::App& app, int argc, const char* const* argv) {
  const CLI::App* command = &app;
  std::string flag;  // the word before, if it may have a value behind it
  for (int i = 1; i < argc; ++i) {
    const std::string word = argv[i];
    const bool is_flag = word.starts_with("--") && word.size() > 2;
    const auto equals = is_flag ? word.find('=') : std::string::npos;
    const bool has_value = equals != std::string::npos;
    if (!is_flag) command = &below(*command, word);
    if (has_value) flag = word.substr(0, equals);
    if (has_value) require_no_switch(*command, flag);
    if (has_value || !is_flag) {
      require_entries(flag.empty() ? fmt::format("word {} of the command line", i) : flag,
                      has_value ? word.substr(equals + 1) : word,
                      flag.empty() ? '\0' : delimiter_of(app, flag));
    }
    flag = is_flag && !has_value ? word : "";
  }
}

}  // namespace ringlet::app
