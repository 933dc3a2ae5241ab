// What a person types to go on with a run that was stopped.
#pragma once

#include <CLI/CLI.hpp>
#include <filesystem>
#include <string>

namespace ringlet::app {

/// "ringlet train --replicas 2 --resume DIR": the flags that were given to `command`, but for those
/// of the recipe, which the state in DIR keeps, and those of the start.
std::string command_to_resume(const CLI::App& command, const std::filesystem::path& folder);

}  // namespace ringlet::app
