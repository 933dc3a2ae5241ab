// The page of a run's replays: one file that needs nothing else and no network. Its script plays
// the calls; without it there are tables, a row a step.
#pragma once

#include <string>
#include <vector>

#include "app/replay/replay.h"

namespace ringlet::app::replay {

/// Of so many of the first calls there is room on a page; at least of one.
std::size_t calls_on_a_page(const std::vector<Replay>& replays);

/// `run` has the calls of `replays`. The page shows those for which there is room, and says how
/// many it leaves out.
std::string page_of(const std::string& trace, const TracedRun& run,
                    const std::vector<Replay>& replays);

}  // namespace ringlet::app::replay
