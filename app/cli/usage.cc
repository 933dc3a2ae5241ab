#include "app/cli/usage.h"

#include <fmt/format.h>

#include <algorithm>
#include <cctype>
#include <filesystem>
#include <string_view>
#include <system_error>
#include <vector>

#include "app/cli/outputs.h"
#include "app/cli/suggest.h"
#include "base/one_line.h"
#include "data/open_dataset.h"

namespace ringlet::app {

namespace {

/// The command that the user chose, however deep; the program itself if none.
const CLI::App* chosen(const CLI::App* app) {
  const auto commands = app->get_subcommands();
  return commands.empty() ? app : chosen(commands.front());
}

std::vector<std::string> commands_of(const CLI::App& command) {
  std::vector<std::string> names;
  for (const CLI::App* sub : command.get_subcommands([](const CLI::App*) { return true; })) {
    names.push_back(sub->get_name());
  }
  return names;
}

std::vector<std::string> flags_of(const CLI::App& command) {
  std::vector<std::string> names;
  for (const CLI::Option* option : command.get_options()) {
    for (const std::string& name : option->get_lnames()) names.push_back("--" + name);
  }
  return names;
}

std::string pointer_to_help(const CLI::App& command) {
  return fmt::format("('{} {}' lists everything)", full_name(command),
                     commands_of(command).empty() ? "--help-all" : "--help");
}

std::string explain_missing_command(const CLI::App& command) {
  return fmt::format("'{}' needs a command: {} {}", full_name(command),
                     fmt::join(commands_of(command), ", "), pointer_to_help(command));
}

/// CLI11's messages about numbers of values, in plain words.
std::string explain_count(const std::string& message) {
  const std::string flag = message.substr(0, message.find_first_of(": "));
  if (message.find("required but received") != std::string::npos) {
    return flag + " is given more than once";
  }
  return flag + " needs a value";
}

/// Whether the word is a folder of a run, or a file of a model.
bool is_trained(const std::filesystem::path& word) {
  std::error_code error;
  return holds_run(word) ||
         (word.extension() == ".safetensors" && std::filesystem::exists(word, error));
}

/// "--data photos", where that word is a model or data which the command would take by the flag;
/// else empty.
std::string flag_for(const CLI::App& command, const std::string& word) {
  const auto has = [&](const char* flag) { return command.get_option_no_throw(flag) != nullptr; };
  if (is_trained(word)) {
    if (has("--checkpoint")) return "--checkpoint " + on_one_line(word);
    if (has("--resume") && holds_run(word)) return "--resume " + on_one_line(word);
  }
  return has("--data") && data::is_dataset(word) ? "--data " + on_one_line(word) : "";
}

std::string replaced(std::string text, const std::string& what, const std::string& by) {
  const auto at = text.find(what);
  return at == std::string::npos ? text : text.replace(at, what.size(), by);
}

}  // namespace

std::string full_name(const CLI::App& command) {
  const CLI::App* parent = command.get_parent();
  return (parent == nullptr ? "" : full_name(*parent) + " ") + command.get_name();
}

std::size_t find_flag(const std::string& text, const std::string& flag, std::size_t from) {
  for (auto at = text.find(flag, from); at != std::string::npos; at = text.find(flag, at + 1)) {
    const std::size_t end = at + flag.size();
    const bool goes_on = end < text.size() && (text[end] == '-' || std::isalnum(text[end]) != 0);
    if (!goes_on && (at == 0 || text[at - 1] != '-')) return at;
  }
  return std::string::npos;
}

std::string explain_unknown(const CLI::App& command, const std::string& word) {
  const auto known = word.starts_with("-") ? flags_of(command) : commands_of(command);
  const std::string name = word.substr(0, word.find('='));
  std::string meant = word.starts_with("-") ? "" : flag_for(command, word);
  if (meant.empty()) meant = ours_for(name, known);
  if (meant.empty()) meant = nearest(name, known);
  return fmt::format("'{}' is not known to '{}'{} {}", word, full_name(command),
                     meant.empty() ? "" : fmt::format("; did you mean {}?", meant),
                     pointer_to_help(command));
}

std::string explain(const CLI::App& app, const CLI::ParseError& error) {
  const CLI::App& command = *chosen(&app);
  const auto unknown = app.remaining(true);
  if (!unknown.empty()) return explain_unknown(command, unknown.front());
  const std::string message = error.what();
  if (dynamic_cast<const CLI::RequiredError*>(&error) != nullptr &&
      message.find("subcommand") != std::string::npos) {
    return explain_missing_command(command);
  }
  if (dynamic_cast<const CLI::RequiredError*>(&error) != nullptr) {
    return fmt::format("{} {}", message, pointer_to_help(command));
  }
  if (dynamic_cast<const CLI::ArgumentMismatch*>(&error) != nullptr) return explain_count(message);
  return replaced(replaced(message, " excludes ", " cannot be combined with "), " requires ",
                  " needs ");
}

std::string as_typed(const CLI::App& app, int argc, const char* const* argv, std::string message) {
  for (const CLI::Option* option : chosen(&app)->get_options()) {
    const std::vector<std::string>& names = option->get_lnames();
    if (names.size() < 2) continue;
    const auto is_typed = [&](const std::string& name) {
      return std::any_of(argv + 1, argv + argc, [&](std::string_view word) {
        return word.substr(0, word.find('=')) == "--" + name;
      });
    };
    const auto typed = std::find_if(names.begin(), names.end(), is_typed);
    if (typed == names.end() || typed == names.begin()) continue;
    const std::string first = "--" + names.front(), own = "--" + *typed;
    if (find_flag(message, own) != std::string::npos) continue;  // it names both
    for (auto at = find_flag(message, first); at != std::string::npos;
         at = find_flag(message, first, at + own.size())) {
      message.replace(at, first.size(), own);
    }
  }
  return message;
}

}  // namespace ringlet::app
