// Runs of several processes that fail: how, and what the user reads.
#pragma once

#include <map>
#include <string>

#include "tests/cli/program.h"

namespace ringlet::testing {

/// The variables of the first of two processes; the port is this test's own.
std::map<std::string, std::string> first_of_two();

/// Process 0 of a run of two whose process 1 is killed while they train.
Outcome outlive_the_other();
/// Process 0 of a run of two whose process 1 is stopped while they train.
Outcome wait_for_a_stopped_one();
/// What is said when `--processes 2` loses both of them at once.
Outcome lose_both();
/// The second of two processes that both say that they are process 0.
Outcome come_twice_as_first();
/// Process 0 of a run of three, of which two say that they are process 1.
Outcome come_twice_as_second();
/// Of two processes with different flags, the one that tells the user.
Outcome disagree(const Arguments& first, const Arguments& second);

}  // namespace ringlet::testing
