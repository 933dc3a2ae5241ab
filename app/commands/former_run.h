// --resume: the run that a new one goes on with, as its folder says. It is read in one process, and
// told to all: only that process has to find the folder. And the command line with which a person
// goes on with a run that was stopped.
#pragma once

#include <CLI/CLI.hpp>
#include <filesystem>
#include <optional>
#include <string>

#include "app/commands/checkpoint.h"
#include "train/files/last_state.h"
#include "train/recipe/options.h"

namespace ringlet::app {

/// --resume auto: goes on with the run in --out where that has a state, and begins it where not.
bool resumes_by_itself(const train::Files& files);

struct FormerRun {
  std::filesystem::path folder;
  train::SavedState state;
  Checkpoint weights;
};

/// The run that the files ask for. Nothing where they ask for none, or for the last state of a
/// folder that has none. `last`, where one is given, gets what find_last_state() has found. Throws
/// FileError, and UsageError for --resume auto without --out.
std::optional<FormerRun> read_former_run(const train::Files& files,
                                         std::optional<train::LastState>* last = nullptr);

/// The above for another process, and back.
std::string to_text(const std::optional<FormerRun>& former);
std::optional<FormerRun> former_run_of(const std::string& text);

/// "ringlet train --replicas 2 --resume DIR": the flags that were given to `command`, but not those
/// of the recipe, which the state in DIR keeps, nor those that only a new run takes.
std::string command_to_resume(const CLI::App& command, const std::filesystem::path& folder);

}  // namespace ringlet::app
