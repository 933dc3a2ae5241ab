// Values that say nothing, as of --out "$UNSET" and --devices cpu:0,,cpu:0. They are refused: CLI11
// takes the first for a value, --out= for a flag whose value is the next word, and the second for a
// list of two.
#pragma once

#include <CLI/CLI.hpp>
#include <string>

namespace ringlet::app {

/// Throws UsageError where `text`, which `origin` gives to `option`, is empty or, for a list, has
/// an empty entry.
void require_value(const CLI::Option& option, const std::string& origin, const std::string& text);

/// The same of every word of a command line, before `app` reads it.
void require_values(const CLI::App& app, int argc, const char* const* argv);

}  // namespace ringlet::app
