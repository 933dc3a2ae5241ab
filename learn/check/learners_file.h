// A learner's file, compiled into a shared library: its strategy.
//
// It was compiled with the product's names renamed, so that it stands beside the library's own:
// RingAllReduce is Learners_RingAllReduce in it. No message tells of that.
#pragma once

#include <string>

#include "comm/all_reduce/strategies.h"
#include "learn/check/child.h"

namespace ringlet::learn {

struct LearnersFile {
  comm::Strategy strategy{};
};

/// Opens the library, which runs what the file does before its first use. Concludes with no-build
/// where something that it needs is defined nowhere; `defines`: what the file should have.
LearnersFile open_learners_file(const std::string& library, std::string_view defines, Board& board);

/// Runs the check that was linked into the library, of a chapter without a strategy.
[[noreturn]] void run_own_check(const std::string& library, std::string_view defines, Board& board);

/// The text without the renaming.
std::string without_renaming(std::string text);

}  // namespace ringlet::learn
