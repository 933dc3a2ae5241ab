// The commands of the program. Each adds itself to the command line; what it does runs after the
// whole line has been read, and returns the exit code.
#pragma once

#include <CLI/CLI.hpp>
#include <functional>
#include <map>
#include <string>
#include <type_traits>
#include <utility>

namespace ringlet::app {

/// Defaults that a command derives for flags that nobody set: a flag's name without dashes, its
/// value.
using FlagValues = std::map<std::string, std::string>;

/// What a chosen command does.
struct Action {
  Action() = default;
  /// Implicit, so that a command may say `action = [] { ... }`.
  template <class Run>
  requires std::is_invocable_r_v<int, Run> Action(
      Run to_run, std::function<FlagValues()> to_tell = [] { return FlagValues(); })  // NOLINT
      : run(std::move(to_run)), values(std::move(to_tell)) {}

  std::function<int()> run;            ///< returns the exit code
  std::function<FlagValues()> values;  ///< what --print-config cannot read off the flags
};

/// `action` is set when the command was chosen.
void add_train_command(CLI::App& app, Action& action);
void add_eval_command(CLI::App& app, Action& action);
void add_verify_command(CLI::App& app, Action& action);
void add_predict_command(CLI::App& app, Action& action);
void add_export_command(CLI::App& app, Action& action);
void add_convert_command(CLI::App& app, Action& action);
void add_report_command(CLI::App& app, Action& action);
void add_bench_command(CLI::App& app, Action& action);
/// Below `ringlet bench`, one for each collective.
void add_bench_collective_commands(CLI::App& bench, Action& action);
void add_compare_command(CLI::App& app, Action& action);
void add_tune_command(CLI::App& app, Action& action);
void add_simulate_command(CLI::App& app, Action& action);
void add_pipeline_command(CLI::App& app, Action& action);
/// `ringlet trace merge`
void add_trace_command(CLI::App& app, Action& action);
void add_replay_command(CLI::App& app, Action& action);
void add_inspect_command(CLI::App& app, Action& action);
void add_devices_command(CLI::App& app, Action& action);
/// These look at the whole of `app` when they run.
void add_completion_command(CLI::App& app, Action& action);
void add_help_command(CLI::App& app, Action& action);

}  // namespace ringlet::app
