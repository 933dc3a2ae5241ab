// The program: reads the command line, runs one command, turns errors into one line and a code.
//
// Exit codes: 0 done, 1 failed, 2 the command line is wrong, 128 + n stopped by signal n.
#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <exception>
#include <memory>
#include <new>
#include <string>
#include <vector>

#include "app/cli/effective_config.h"
#include "app/cli/error_exit.h"
#include "app/cli/help.h"
#include "app/cli/processes.h"
#include "app/cli/settings.h"
#include "app/cli/signals.h"
#include "app/cli/usage.h"
#include "app/commands.h"
#include "train/version.h"

namespace {

using ringlet::app::Action;
using ringlet::app::kFailed;
using ringlet::app::kUsage;
using ringlet::app::print_error;
using ringlet::app::print_warning;

int run(int argc, char** argv) {
  CLI::App app("Ringlet trains neural networks on N replicas and sums their gradients.", "ringlet");
  app.formatter(std::make_shared<ringlet::app::HelpFormatter>());
  app.set_help_flag("-h,--help", "show this and end");
  app.set_version_flag("--version", std::string("ringlet ") + ringlet::train::kVersion,
                       "show the version and end");
  app.require_subcommand(1);
  app.footer(
      "A flag can also be set in a TOML file (--config FILE: batch-size = 256) and by "
      "a variable of the\n"
      "environment (RINGLET_BATCH_SIZE=256; for --data it is RINGLET_DATASET). "
      "The command line counts more\n"
      "than the environment, and that more than the file.\n");
  ringlet::app::Action action;
  ringlet::app::add_train_command(app, action);
  ringlet::app::add_eval_command(app, action);
  ringlet::app::add_predict_command(app, action);
  ringlet::app::add_export_command(app, action);
  ringlet::app::add_report_command(app, action);
  ringlet::app::add_bench_command(app, action);
  ringlet::app::add_tune_command(app, action);
  ringlet::app::add_inspect_command(app, action);
  ringlet::app::add_devices_command(app, action);
  ringlet::app::add_completion_command(app, action);
  for (CLI::App* command : app.get_subcommands(nullptr)) command->group("Commands");
  ringlet::app::Settings settings(app);
  try {
    app.parse(argc, argv);
    std::vector<std::string> warnings;
    settings.apply(warnings);
    for (const std::string& warning : warnings) ringlet::app::print_warning(warning);
  } catch (const CLI::Success& request) {  // --help, --version
    return app.exit(request);
  } catch (const CLI::ParseError& error) {
    ringlet::app::print_error(ringlet::app::explain(app, error));
    return kUsage;
  }
  if (!settings.print_only()) return action.run();
  fmt::print("{}",
             ringlet::app::effective_config(*ringlet::app::chosen_command(app), action.values()));
  return 0;
}

}  // namespace

int main(int argc, char** argv) {
  ringlet::app::fail_writes_beyond_limit();
  try {
    return run(argc, argv);
  } catch (const ringlet::app::ToldElsewhere&) {
    return kFailed;
  } catch (const ringlet::app::UsageError& error) {
    ringlet::app::print_error(error.what());
    return kUsage;
  } catch (const std::bad_alloc&) {
    ringlet::app::print_error(
        "the machine's memory is used up; use a smaller batch, fewer replicas or less data");
  } catch (const std::exception& error) {
    ringlet::app::print_error(error.what());
  } catch (...) {
    ringlet::app::print_error("an unknown error");
  }
  return kFailed;
}
