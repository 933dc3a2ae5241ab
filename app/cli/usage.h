// Errors of a command line, each in one line.
#pragma once

#include <CLI/CLI.hpp>
#include <string>

#include "app/cli/error_exit.h"
#include "base/error.h"

namespace ringlet::app {

/// Makes the setup of a run; options that contradict each other become UsageErrors.
template <class Make>
auto checked(const Make& make_setup) {
  try {
    return make_setup();
  } catch (const ContractError& error) {
    throw UsageError(error.what(), error.where());
  }
}

/// "ringlet bench train"
std::string full_name(const CLI::App& command);

/// Where `flag` stands in the text as a word of its own, at or behind `from`; npos: nowhere.
std::size_t find_flag(const std::string& text, const std::string& flag, std::size_t from = 0);

/// "'--epoch' is not known to 'ringlet train'; did you mean --epochs? (...)"
std::string explain_unknown(const CLI::App& command, const std::string& word);

/// The same for whatever CLI11 found to be wrong.
std::string explain(const CLI::App& app, const CLI::ParseError& error);

/// `message` with a flag's second name, --micro-batches for --accumulate, where the command line
/// has that.
std::string as_typed(const CLI::App& app, int argc, const char* const* argv, std::string message);

}  // namespace ringlet::app
