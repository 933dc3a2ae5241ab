// Validators of flags. Each describes what it accepts, and names the nearest valid word for a wrong
// one. They judge the text before CLI11 converts it, so "1e3", "nan" or a number of thirty digits
// never get through.
#pragma once

#include <CLI/CLI.hpp>
#include <cstdint>
#include <limits>
#include <string>
#include <vector>

#include "train/recipe/option.h"

namespace ringlet::app {

/// Only `choices`.
CLI::Validator one_of(const std::vector<std::string>& choices);

/// A whole number from `min` to `max`, in decimal. For transform(): check() gives it a copy, and
/// CLI11 takes 010 for 8.
CLI::Validator whole_number(std::int64_t min,
                            std::int64_t max = std::numeric_limits<std::int32_t>::max());

/// The numbers that the option's row takes.
CLI::Validator number_of(train::OptionRow row);

/// A device's name, cpu:0 or cuda:1; whether it exists shows when it is opened.
CLI::Validator device_name();

/// The name of a data set (data/open_dataset.h), or a folder.
CLI::Validator data_name();

// Values that say nothing, as of --out "$UNSET" and --devices cpu:0,,cpu:0, are refused as well:
// CLI11 takes the first for a value, --out= for a flag whose value is the next word, and the second
// for a list of two. So are values of switches, --exact=true.

/// Throws UsageError where `text`, which `origin` gives to `option`, is empty or, for a list, has
/// an empty entry.
void require_value(const CLI::Option& option, const std::string& origin, const std::string& text);

/// The same of every word of a command line, before `app` reads it.
void require_values(const CLI::App& app, int argc, const char* const* argv);

}  // namespace ringlet::app
