// The program: reads the command line, runs one command, turns errors into one line and a code.
//
// Exit codes: 0 done, 1 failed, 2 the command line is wrong, 128 + n stopped by signal n.
#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <exception>
#include <memory>
#include <new>
#include <optional>
#include <string>
#include <vector>

#include "app/cli/effective_config.h"
#include "app/cli/error_exit.h"
#include "app/cli/help.h"
#include "app/cli/processes.h"
#include "app/cli/settings.h"
#include "app/cli/signals.h"
#include "app/cli/usage.h"
#include "app/cli/version.h"
#include "app/commands.h"

namespace ringlet::app {

namespace {

void describe(CLI::App& app, Action& action) {
  app.formatter(std::make_shared<HelpFormatter>());
  app.set_help_flag("-h,--help", "show this and end");
  app.set_help_all_flag("--help-all", "show every flag and end");
  // Flags are read in this order, and --version ends the reading.
  auto json = std::make_shared<bool>(false);
  CLI::Option* as_json = app.add_flag("--json", *json, "with --version: for programs");
  as_json->needs(app.set_version_flag(
      "--version", [json] { return version_text(*json); }, "show the version and end"));
  app.require_subcommand(1);
  app.footer(
      "A flag can also be set in a TOML file (--config FILE: batch-size = 256) and by a variable "
      "of the environment (RINGLET_BATCH_SIZE=256; for --data it is RINGLET_DATASET). The command "
      "line counts more than the environment, and that more than the file.");
  add_train_command(app, action);
  add_eval_command(app, action);
  add_predict_command(app, action);
  add_export_command(app, action);
  add_report_command(app, action);
  add_bench_command(app, action);
  add_tune_command(app, action);
  add_inspect_command(app, action);
  add_devices_command(app, action);
  add_completion_command(app, action);
  add_help_command(app, action);
  for (CLI::App* command : app.get_subcommands(nullptr)) {
    command->group("Commands");
    for (CLI::App* below : command->get_subcommands(nullptr)) below->group("Commands");
  }
}

/// Reads the command line. Returns the exit code where there is no action to run.
std::optional<int> parse(CLI::App& app, Settings& settings, const Action& action, int argc,
                         char** argv) {
  try {
    app.parse(argc, argv);
    std::vector<std::string> warnings;
    settings.apply(warnings);
    for (const std::string& warning : warnings) print_warning(warning);
  } catch (const CLI::Success& request) {  // --help, --version
    return app.exit(request);
  } catch (const CLI::ParseError& error) {
    print_error(explain(app, error));
    return kUsage;
  }
  if (!settings.print_only()) return {};
  fmt::print("{}", effective_config(*chosen_command(app), action.values()));
  return 0;
}

}  // namespace

}  // namespace ringlet::app

int main(int argc, char** argv) {
  using ringlet::app::print_error;
  ringlet::app::fail_writes_beyond_limit();
  try {
    CLI::App app("Ringlet trains neural networks on N replicas and sums their gradients.",
                 "ringlet");
    ringlet::app::Action action;
    ringlet::app::describe(app, action);
    ringlet::app::Settings settings(app);
    const auto code = ringlet::app::parse(app, settings, action, argc, argv);
    return code ? *code : action.run();
  } catch (const ringlet::app::ToldElsewhere&) {
    return ringlet::app::kFailed;
  } catch (const ringlet::app::UsageError& error) {
    print_error(error.what());
    return ringlet::app::kUsage;
  } catch (const std::bad_alloc&) {
    print_error(
        "the machine's memory is used up; use a smaller batch, fewer replicas or less data");
  } catch (const std::exception& error) {
    print_error(error.what());
  } catch (...) {
    print_error("an unknown error");
  }
  return ringlet::app::kFailed;
}
