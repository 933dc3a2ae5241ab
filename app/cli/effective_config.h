// The configuration that a command runs with, as a file that --config reads.
#pragma once

#include <CLI/CLI.hpp>
#include <string>

#include "app/commands/commands.h"

namespace ringlet::app {

/// All flags of `command` in their groups, each with what it says in --help: with the value that
/// was given, or that the command takes by itself (`resolved`, else the flag's default). A flag
/// without a value, or that another one replaces, is a comment. What is no property of a run is
/// left out:
/// --force and --resume.
std::string effective_config(const CLI::App& command, const FlagValues& resolved);

}  // namespace ringlet::app
