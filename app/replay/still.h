// A picture of a call: what each part holds after some of its steps, with the messages that the
// step has brought. SVG that needs nothing else; for documents.
#pragma once

#include <string>
#include <vector>

#include "app/replay/replay.h"

namespace ringlet::app::replay {

/// Each of `steps` lies in [0, replay.steps]; none: all of them, where there are many a choice.
std::string still_of(const Replay& replay, std::vector<int> steps);

}  // namespace ringlet::app::replay
