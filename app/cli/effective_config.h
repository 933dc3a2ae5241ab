// The configuration that a command runs with, as a file that --config reads.
#pragma once

#include <CLI/CLI.hpp>
#include <string>

#include "app/cli/commands.h"

namespace ringlet::app {

/// All flags of `command` in their groups, each with its text from --help. The value is the one
/// that was given, else the one that the command chose (`resolved`), else the flag's default. A
/// flag without a value, or that another one replaces, is a comment. --force and --resume are left
/// out: they are no property of a run.
std::string effective_config(const CLI::App& command, const FlagValues& resolved);

}  // namespace ringlet::app
