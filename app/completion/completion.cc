#include "app/completion/completion.h"

#include <CLI/CLI.hpp>
#include <algorithm>
#include <cctype>
#include <string_view>

#include "app/cli/settings.h"

namespace ringlet::app {

namespace {

using Files = ValueSpec::Files;

/// FILE, DIR, N: stands for something else. Only letters and digits make a word that can be typed.
bool is_placeholder(std::string_view word) {
  return word.empty() || std::none_of(word.begin(), word.end(),
                                      [](unsigned char c) { return std::islower(c) != 0; });
}

bool is_plain(std::string_view word) {
  return std::all_of(word.begin(), word.end(), [](unsigned char c) {
    return std::isalnum(c) != 0 || c == '-' || c == '_' || c == '.' || c == ',';
  });
}

void add_word(std::string word, ValueSpec& value) {
  if (word.ends_with("...")) word.resize(word.size() - 3);
  if (word == "FILE" || word == "IMAGE") {
    value.files = Files::files;
  } else if (word == "DIR" && value.files == Files::none) {
    value.files = Files::folders;
  } else if (word == "DEVICE") {
    value.choices.insert(value.choices.end(), {"cpu", "cuda"});
  } else if (!is_placeholder(word) && is_plain(word)) {
    value.choices.push_back(word);
  }
}

ValueSpec value_spec(const CLI::Option& option) {
  ValueSpec value;
  value.taken = !is_switch(option);
  if (!value.taken) return value;
  const std::string type = option.get_type_name();
  for (std::size_t begin = 0; begin <= type.size();) {
    const std::size_t end = std::min(type.find('|', begin), type.size());
    add_word(type.substr(begin, end - begin), value);
    begin = end + 1;
  }
  return value;
}

std::vector<const CLI::App*> commands_below(const CLI::App& app) {
  return app.get_subcommands([](const CLI::App*) { return true; });
}

std::string brief(const std::string& description) {
  return description.substr(0, std::min(description.find("; "), description.find(" [")));
}

/// The names of the commands below `app`, which stand as words there: `help bench train`.
std::vector<CommandSpec> names_below(const CLI::App& app) {
  std::vector<CommandSpec> names;
  for (const CLI::App* sub : commands_below(app)) {
    CommandSpec& name = names.emplace_back();
    name.name = sub->get_name();
    name.brief = brief(sub->get_description());
    name.commands = names_below(*sub);
  }
  return names;
}

FlagSpec flag_spec(const CLI::Option& option) {
  FlagSpec flag;
  for (const std::string& name : option.get_lnames()) flag.names.push_back("--" + name);
  for (const std::string& name : option.get_snames()) flag.names.push_back("-" + name);
  flag.brief = brief(option.get_description());
  flag.value = value_spec(option);
  return flag;
}

}  // namespace

CommandSpec describe(const CLI::App& app) {
  CommandSpec command;
  command.name = app.get_name();
  command.brief = brief(app.get_description());
  for (const CLI::Option* option : app.get_options()) {
    if (option->nonpositional()) {
      command.flags.push_back(flag_spec(*option));
    } else if (option->get_type_name() == kCommandWords) {
      command.commands = names_below(*app.get_parent());
    } else {
      command.word = value_spec(*option);
    }
  }
  for (const CLI::App* sub : commands_below(app)) command.commands.push_back(describe(*sub));
  return command;
}

}  // namespace ringlet::app
