// A command line that cannot be: what is wrong with it, in one line.
#pragma once

#include <CLI/CLI.hpp>
#include <string>

#include "app/cli/usage_error.h"
#include "kernels/error.h"

namespace ringlet::app {

/// The setup of a run; options that cannot be together become UsageErrors.
template <class Make>
auto checked(const Make& make_setup) {
  try {
    return make_setup();
  } catch (const ContractError& error) {
    throw UsageError(error.what(), error.where());
  }
}

/// "'--epoch' is not known to 'ringlet train'; did you mean --epochs? (...)"
std::string explain(const CLI::App& app, const CLI::ParseError& error);

}  // namespace ringlet::app
