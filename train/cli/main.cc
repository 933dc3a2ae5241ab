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

#include "train/cli/commands.h"
#include "train/cli/effective_config.h"
#include "train/cli/error_exit.h"
#include "train/cli/help.h"
#include "train/cli/processes.h"
#include "train/cli/settings.h"
#include "train/cli/signals.h"
#include "train/cli/usage.h"
#include "train/version.h"

namespace {

using ringlet::train::Action;
using ringlet::train::kFailed;
using ringlet::train::kUsage;
using ringlet::train::print_error;
using ringlet::train::print_warning;

int run(int argc, char** argv) {
  CLI::App app("Ringlet trains neural networks on N replicas that make their gradients one.",
               "ringlet");
  app.formatter(std::make_shared<ringlet::train::HelpFormatter>());
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
  Action action;
  ringlet::train::add_train_command(app, action);
  ringlet::train::add_eval_command(app, action);
  ringlet::train::add_predict_command(app, action);
  ringlet::train::add_export_command(app, action);
  ringlet::train::add_report_command(app, action);
  ringlet::train::add_bench_command(app, action);
  ringlet::train::add_tune_command(app, action);
  ringlet::train::add_inspect_command(app, action);
  ringlet::train::add_devices_command(app, action);
  ringlet::train::add_completion_command(app, action);
  for (CLI::App* command : app.get_subcommands(nullptr)) command->group("Commands");
  ringlet::train::Settings settings(app);
  try {
    app.parse(argc, argv);
    std::vector<std::string> warnings;
    settings.apply(warnings);
    for (const std::string& warning : warnings) print_warning(warning);
  } catch (const CLI::Success& request) {  // --help, --version
    return app.exit(request);
  } catch (const CLI::ParseError& error) {
    print_error(ringlet::train::explain(app, error));
    return kUsage;
  }
  if (!settings.print_only()) return action.run();
  fmt::print("{}", ringlet::train::effective_config(*ringlet::train::chosen_command(app),
                                                    action.values()));
  return 0;
}

}  // namespace

int main(int argc, char** argv) {
  ringlet::train::fail_writes_beyond_limit();
  try {
    return run(argc, argv);
  } catch (const ringlet::train::ToldElsewhere&) {
    return kFailed;
  } catch (const ringlet::train::UsageError& error) {
    print_error(error.what());
    return kUsage;
  } catch (const std::bad_alloc&) {
    print_error(
        "the machine's memory is used up; use a smaller batch, fewer replicas or less data");
  } catch (const std::exception& error) {
    print_error(error.what());
  } catch (...) {
    print_error("an unknown error");
  }
  return kFailed;
}
