// What `bench all-reduce` and `tune` do on a busy machine: --budget and --strict, and what is said
// of rows that do not count.
#pragma once

#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <string>
#include <vector>

#include "app/cli/option_flags.h"
#include "app/commands/all_reduce_bench_flags.h"
#include "bench/all_reduce/measurement.h"
#include "bench/simulation/quantities.h"

namespace ringlet::app {

/// "60s", of the field that keeps the seconds. To be checked by time_check().
template <class S>
train::Option<S> budget_option(double S::*seconds) {
  return train::named_option<S>(
      "budget", [seconds](const S& all) { return fmt::format("{:g}s", all.*seconds); },
      [seconds](S& all, const std::string& text) { all.*seconds = *bench::parse_seconds(text); },
      {.help = "how long to measure again, at most, what other work on the machine disturbs",
       .value_name = "TIME"});
}
/// A time such as 60s or 500ms, above 0.
CLI::Validator time_check();

void add_budget_flags(CLI::App& command, AllReduceFlags& flags);

/// "135 rows: about 34 s, and up to 60 s more to measure again what other work disturbs
/// (--budget)".
std::string time_text(const AllReduceFlags& flags, const std::vector<AllReduceBlock>& blocks);
/// "the machine was busy: 31 of 120 rows do not count", and what ran on the ranks' cores, as lines;
/// "" where there is nothing to say.
std::string busy_line(const std::vector<bench::Measurement>& rows);
/// The exit code of a measurement that went well: kNotGood under --strict where a row does not
/// count.
int exit_code(const AllReduceFlags& flags, const std::vector<bench::Measurement>& rows);

}  // namespace ringlet::app
