// ringlet completion
#include <fmt/format.h>

#include <memory>
#include <string>

#include "app/cli/checks.h"
#include "app/cli/commands.h"
#include "app/completion/completion.h"

namespace ringlet::app {

namespace {

constexpr const char* kHow =
    "To have it in every shell, add to its start-up file:\n"
    "  ~/.bashrc                    source <(ringlet completion bash)\n"
    "  ~/.zshrc, behind compinit    source <(ringlet completion zsh)\n"
    "  ~/.config/fish/config.fish   ringlet completion fish | source\n";

int print_completion(const CLI::App& app, const std::string& shell) {
  const CommandSpec program = describe(app);
  fmt::print("{}", shell == "bash"  ? bash_completion(program)
                   : shell == "zsh" ? zsh_completion(program)
                                    : fish_completion(program));
  return 0;
}

}  // namespace

void add_completion_command(CLI::App& app, Action& action) {
  auto shell = std::make_shared<std::string>();
  CLI::App* command = app.add_subcommand(
      "completion", "print a script that lets a shell complete commands, flags and values");
  command->add_option("shell", *shell, "for which shell")
      ->required()
      ->check(one_of({"bash", "zsh", "fish"}))
      ->type_name("bash|zsh|fish");
  command->footer(kHow);
  command->callback(
      [shell, &app, &action] { action = [shell, &app] { return print_completion(app, *shell); }; });
}

}  // namespace ringlet::app
