// Flags of rows (train/recipe/option.h): names, help, type, default and check come from the row.
#pragma once

#include <CLI/CLI.hpp>
#include <functional>
#include <string>
#include <vector>

#include "train/recipe/option_table.h"

namespace ringlet::app {

/// Gets the value that was given.
using NoteOption = std::function<void(const train::OptionValue& value)>;

/// The row's flag with this help, which has the default in it.
CLI::Option* add_flag(CLI::App& app, const train::OptionRow& row, const std::string& help,
                      const NoteOption& note);
/// The same with the row's help. Where nobody gives it, it is `standard`.
CLI::Option* add_flag(CLI::App& app, const train::OptionRow& row,
                      const train::OptionValue& standard, const NoteOption& note);

/// A flag for each row, which sets it in `flags`; what `flags` hold by now are the defaults.
template <class S>
void add_flags(CLI::App& app, S& flags, const std::string& group,
               const std::vector<train::Option<S>>& rows) {
  for (const train::Option<S>& row : rows) {
    const auto note = [&flags, set = row.set](const train::OptionValue& value) {
      set(flags, value);
    };
    add_flag(app, row, row.get(flags), note)->group(group);
  }
}

}  // namespace ringlet::app
