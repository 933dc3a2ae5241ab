// `ringlet bench train` with several numbers of --replicas: how much faster more of them are, and
// whether another device would pay.
#pragma once

#include <CLI/CLI.hpp>

#include "app/commands/training_bench.h"

namespace ringlet::app {

/// Adds --batch, --processes, --budget and --report.
void add_scaling_flags(CLI::App& command, BenchFlags& flags);

/// To be called in the command's callback, when nothing but the command line was read: set
/// elsewhere, these flags may be meant for other runs.
void note_scaling_flags(const CLI::App& command, BenchFlags& flags);
/// Throws UsageError where one of these flags is given, and one number of replicas measured.
void require_one_number(const BenchFlags& flags);

/// Measures, prints, and writes what was asked for. Returns the exit code. As a process of its own
/// making, it measures this process's part of a round.
int run_scaling_bench(const BenchFlags& flags, const CLI::App& command);

}  // namespace ringlet::app
