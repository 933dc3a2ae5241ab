// ringlet train --seeds and --sweep: many runs, each a process that trains as if its flags had been
// typed, and what came of them in one folder:
//
//   OUT/lr=0.05,seed=1/     a run's folder, as any other's
//   OUT/lr=0.05,seed=1.txt  what it has printed
//   OUT/sweep.json          plan, results, comparisons; renewed as each run ends
//   OUT/sweep.html          the same as a page
#pragma once

#include <CLI/CLI.hpp>
#include <string>
#include <vector>

#include "app/cli/flags.h"

namespace ringlet::app {

struct SweepFlags {
  std::string seeds;              ///< "1,2,3" or "1..3"; empty: those of --seed
  std::vector<std::string> axes;  ///< "lr=0.05,0.1"
  int runs_at_once = 1;
  std::vector<std::string> words{};  ///< the command line's other flags, as words for a run

  bool asked_for() const { return !seeds.empty() || !axes.empty(); }
};

/// Adds --seeds, --sweep and --runs-at-once.
void add_sweep_flags(CLI::App& command, SweepFlags& flags, const char* group);

/// To be called in the command's callback, when nothing but the command line was read: notes the
/// flags that all runs get. Those of a file and of the environment reach the runs by themselves.
void note_words(const CLI::App& command, SweepFlags& sweep);

/// Throws UsageError where a flag of a sweep was given and none was asked for.
void require_a_sweep(const CLI::App& command);

/// Trains all runs. Returns the exit code: kFailed where one has failed. Throws UsageError before
/// the first of them where a setting's flags are wrong.
int run_sweep(const SweepFlags& sweep, const RawFlags& flags, const CLI::App& command);

}  // namespace ringlet::app
