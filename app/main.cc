// The program: reads the command line, runs one command, turns errors into one line and a code.
//
// Exit codes: 0 done, 1 failed, 2 the command line is wrong, 3 what was printed is lost, 4 what was
// measured or compared is refused (--strict, --fail-over), 5 a loss or weights are no numbers any
// more, 128 + n stopped by signal n.
#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <exception>
#include <memory>
#include <optional>
#include <string>
#include <system_error>
#include <vector>

#include "app/cli/before_meeting.h"
#include "app/cli/checks.h"
#include "app/cli/commands.h"
#include "app/cli/error_exit.h"
#include "app/cli/help.h"
#include "app/cli/processes.h"
#include "app/cli/settings.h"
#include "app/cli/signals.h"
#include "app/cli/standard_output.h"
#include "app/cli/usage.h"
#include "app/cli/version.h"
#include "base/error.h"
#include "base/instruction_set.h"
#include "base/memory_reserve.h"
#include "base/stop_request.h"
#include "train/reports/failure.h"

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
  add_verify_command(app, action);
  add_predict_command(app, action);
  add_export_command(app, action);
  add_convert_command(app, action);
  add_report_command(app, action);
  add_bench_command(app, action);
  add_compare_command(app, action);
  add_tune_command(app, action);
  add_simulate_command(app, action);
  add_pipeline_command(app, action);
  add_trace_command(app, action);
  add_replay_command(app, action);
  add_inspect_command(app, action);
  add_devices_command(app, action);
  add_completion_command(app, action);
  add_help_command(app, action);
  for (CLI::App* command : app.get_subcommands(nullptr)) {
    command->group("Commands");
    for (CLI::App* below : command->get_subcommands(nullptr)) below->group("Commands");
  }
}

int refuse_command_line(int argc, char** argv, const std::string& why) {
  print_error(why);
  tell_others_of_command_line(argc, argv, why);
  return kUsage;
}

/// Reads the command line. Returns the exit code where there is no action to run.
std::optional<int> parse(CLI::App& app, Settings& settings, const Action& action, int argc,
                         char** argv) {
  try {
    require_values(app, argc, argv);
    app.parse(argc, argv);
    std::vector<std::string> warnings;
    settings.apply(warnings);
    for (const std::string& warning : warnings) print_warning(warning);
    detect_instruction_set();              // a wrong variable is told before anything is begun
  } catch (const CLI::Success& request) {  // --help, --version
    return app.exit(request);
  } catch (const CLI::ParseError& error) {
    return refuse_command_line(argc, argv, as_typed(app, argc, argv, explain(app, error)));
  } catch (const UsageError& error) {
    return refuse_command_line(argc, argv,
                               as_typed(app, argc, argv, settings.with_origins(error.what())));
  } catch (const DeviceError& error) {
    return refuse_command_line(argc, argv, error.what());
  }
  if (!settings.print_only()) return {};
  try {
    fmt::print("{}", effective_config(*chosen_command(app), action.values()));
  } catch (const UsageError& error) {
    throw UsageError(settings.with_origins(error.what()));
  }
  return 0;
}

/// Runs the command that `argv` names. Returns the exit code.
int run_program(int argc, char** argv) {
  try {
    CLI::App app("Ringlet trains neural networks on N replicas and sums their gradients.",
                 "ringlet");
    Action action;
    describe(app, action);
    Settings settings(app);
    const auto code = parse(app, settings, action, argc, argv);
    if (code) return *code;
    try {
      return action.run();
    } catch (const UsageError& error) {
      throw UsageError(as_typed(app, argc, argv, settings.with_origins(error.what())));
    }
  } catch (const Told& told) {
    return told.code();
  } catch (const Stopped&) {
    return kInterrupted + noted_signal();
  } catch (const UsageError& error) {
    print_error(error.what());
    return kUsage;
  } catch (const ComparisonError& error) {
    print_error(error.what());
    return kNotGood;
  } catch (const train::NumbersError& error) {
    print_error(error.what());
    return kNoNumbers;
  } catch (const std::system_error&) {
    if (output_failed()) return 0;  // as far as the work goes; finish_output() tells the rest
    print_error(message_of_current_exception());
  } catch (...) {
    print_error(message_of_current_exception());
  }
  return kFailed;
}

}  // namespace

}  // namespace ringlet::app

int main(int argc, char** argv) {
  ringlet::set_memory_aside();
  ringlet::app::secure_standard_streams();
  ringlet::app::remember_command_line(argc, argv);
  ringlet::app::take_signals_back();
  ringlet::app::fail_writes_beyond_limit();
  ringlet::app::end_process(ringlet::app::finish_output(ringlet::app::run_program(argc, argv)));
}
