// The commands of the program. Each adds itself to the command line; what it does runs after the
// whole line has been read, and returns the exit code.
#pragma once

#include <CLI/CLI.hpp>
#include <functional>

namespace ringlet::train {

using Action = std::function<int()>;

/// `action` is set when the command was chosen.
void add_train_command(CLI::App& app, Action& action);
void add_eval_command(CLI::App& app, Action& action);
void add_bench_command(CLI::App& app, Action& action);
void add_devices_command(CLI::App& app, Action& action);

}  // namespace ringlet::train
