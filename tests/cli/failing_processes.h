// Runs of several processes that fail: how, and what the user reads.
#pragma once

#include <map>
#include <string>

#include "tests/cli/program.h"

namespace ringlet::testing {

/// The variables of the first of two processes; the port is this test's own.
std::map<std::string, std::string> first_of_two();

/// The outcome of process 0 of two, where process 1 is killed while they train. `more`: flags.
Outcome outlive_the_other(const Arguments& more = {});
/// The outcome of process 0 of two, where process 1 is stopped while they train.
Outcome wait_for_a_stopped_one(const Arguments& more = {});
/// The outcome of `--processes 2` that loses both processes at once.
Outcome lose_both(const Arguments& more = {});
/// The outcome of the second of two processes that both claim to be process 0.
Outcome come_twice_as_first();
/// The outcome of process 0 of three processes, two of which claim to be process 1.
Outcome come_twice_as_second();
/// The outcome of process 0 of two, where process 1 fails before it comes.
Outcome wait_for_one_that_cannot_begin();
/// The outcome of the one that tells the user, of two processes with different flags.
Outcome disagree(const Arguments& first, const Arguments& second);

}  // namespace ringlet::testing
