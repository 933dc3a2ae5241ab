// A training's sums beside its backward: what lies under it costs nothing.
#pragma once

#include <vector>

#include "app/replay/replay.h"
#include "app/report/html.h"

namespace ringlet::app::replay {

/// A lane for each call that begins in or behind a backward; a click on its name plays the call.
/// Nothing where the trace has no backward.
report::Html lanes_of(const TracedRun& run, const std::vector<Replay>& replays);

}  // namespace ringlet::app::replay
