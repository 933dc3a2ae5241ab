// The layers of the checker. The first failure wins, with the fewest ranks and elements that show
// it:
//
//   A  order    ranks in lockstep: deadlocks, messages that do not fit, ranks that do not exist,
//               exchanges without end
//   B  numbers  what each rank has in the end, and how much is sent for it
//   D  races    from the order of steps alone; then A and B once more, of data as long as LeNet's
//   C  threads  the same between real threads, which brings the trace
//
// C is last: what it finds, it finds by luck.
#pragma once

#include <cstdint>
#include <string>

#include "learn/check/chapters.h"
#include "learn/check/child.h"
#include "learn/check/learners_file.h"

namespace ringlet::learn {

/// Ends in a conclusion. `trace`: where the trace of a right run goes; empty: none is written.
[[noreturn]] void check_layers(const Chapter& chapter, const LearnersFile& file, Board& board,
                               const std::string& trace);

/// Only whether 4 ranks come to an end where messages of up to `eager_bytes` leave before their
/// receiver has come, as many transports have it: what waits in a circle then works while it is
/// short. Concludes with the first length that hangs, of powers of two.
[[noreturn]] void check_eager(const Chapter& chapter, const LearnersFile& file,
                              std::int64_t eager_bytes, Board& board);

}  // namespace ringlet::learn
