// ringlet help
#include <fmt/format.h>

#include <memory>
#include <string>
#include <vector>

#include "app/cli/help.h"
#include "app/cli/usage.h"
#include "app/commands.h"
#include "app/completion/completion.h"

namespace ringlet::app {

namespace {

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

int print_help(const CLI::App& app, const std::vector<std::string>& words) {
  fmt::print("{}", help_of(command_at(app, words)));
  return 0;
}

}  // namespace

void add_help_command(CLI::App& app, Action& action) {
  auto words = std::make_shared<std::vector<std::string>>();
  CLI::App* command = app.add_subcommand("help", "show the help of a command, as --help does");
  command->add_option("COMMAND", *words, "of which command, as bench train")
      ->type_name(kCommandWords);
  command->callback(
      [words, &app, &action] { action = [words, &app] { return print_help(app, *words); }; });
}

}  // namespace ringlet::app
