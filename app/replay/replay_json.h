// A run's replays for programs:
//
//   {"calls": [{
//     "name": "bucket 0", "call": 7, "ranks": 4, "world_ranks": [], "type": "f32", "op": "mean",
//     "begin_us": T, "end_us": T, "failed": false, "stuck": "",
//     "steps": 6, "messages": 24, "bytes": N, "busiest_bytes": N, "waited_us": [T of each rank],
//     "parts": [[begin, end), ...],                                       in bytes
//     "events": [{"t_us": T, "step": S, "rank": R, "part": P, "has": [count of each rank]}, ...],
//     "final": [[has, a part], a rank]}, ...]}
//
// "world_ranks" says who the ranks are in the world, where they are some of it. Times are the
// trace's. An event is a part of a rank's data that has changed.
#pragma once

#include <string>
#include <vector>

#include "app/replay/replay.h"

namespace ringlet::app::replay {

std::string to_json_text(const std::vector<Replay>& replays);

}  // namespace ringlet::app::replay
