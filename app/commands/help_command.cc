// ringlet help
#include <fmt/format.h>

#include <memory>
#include <string>
#include <vector>

#include "app/cli/commands.h"
#include "app/cli/help.h"
#include "app/cli/usage.h"
#include "app/completion/completion.h"

namespace ringlet::app {

namespace {

struct HelpFlags {
  std::vector<std::string> words;
  bool man = false;
};

/// The command that the words name, one below the other.
const CLI::App& command_at(const CLI::App& app, const std::vector<std::string>& words) {
  const CLI::App* command = &app;
  for (const std::string& word : words) {
    const auto below =
        command->get_subcommands([&](const CLI::App* sub) { return sub->get_name() == word; });
    if (below.empty()) throw UsageError(explain_unknown(*command, word));
    command = below.front();
  }
  return *command;
}

int print_help(const CLI::App& app, const HelpFlags& flags) {
  fmt::print("{}", flags.man ? man_page(app) : help_of(command_at(app, flags.words)));
  return 0;
}

}  // namespace

void add_help_command(CLI::App& app, Action& action) {
  auto flags = std::make_shared<HelpFlags>();
  CLI::App* command = app.add_subcommand("help", "show the help of a command, as --help does");
  auto* words = command->add_option("COMMAND", flags->words, "of which command, as bench train")
                    ->type_name(kCommandWords);
  command->add_flag("--man", flags->man, "print the manual page of all commands, for man -l")
      ->excludes(words);
  command->callback(
      [flags, &app, &action] { action = [flags, &app] { return print_help(app, *flags); }; });
}

}  // namespace ringlet::app
