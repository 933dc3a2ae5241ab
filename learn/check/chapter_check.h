// A chapter with a check of its own, beside that of strategies: the program has one such function.
#pragma once

#include "learn/check/child.h"

namespace ringlet::learn {

/// Runs what the learner wrote, and concludes. In the child.
extern "C" void check_chapter(Board& board);

}  // namespace ringlet::learn
