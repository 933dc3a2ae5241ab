// The layer of real threads: what a strategy does where nobody takes turns.
#pragma once

#include <string>

#include "comm/all_reduce/strategies.h"
#include "learn/check/chapters.h"
#include "learn/check/child.h"

namespace ringlet::learn {

/// Some cases between the threads of a LocalGroup; concludes where one is wrong. `trace`: a file
/// for the trace of one of them; empty: none. Says why there is no trace although one was wished
/// for, as words that follow others; else it says nothing.
std::string check_threads(const Chapter& chapter, const comm::Strategy& strategy,
                          const std::string& trace, Board& board);

}  // namespace ringlet::learn
