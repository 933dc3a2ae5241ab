// Which ranks are in a call together. Beside calls of the whole world there are those of parts of
// it, such as the ranks of each machine or a mesh's axis: several of these may have one number.
#pragma once

#include <cstdint>
#include <map>
#include <vector>

#include "app/replay/traced_call.h"

namespace ringlet::app::replay {

/// Those who came to a call of some number, by their ranks in the world, with what they did.
using Came = std::map<std::int64_t, TracedRank>;

/// A call each of `size` ranks: of the whole world, or of those who exchange with each other. Ranks
/// of the latter, TracedCall::members, are numbered anew; a group may lack some, or have too many.
std::vector<TracedCall> calls_of(Came came, int size);

}  // namespace ringlet::app::replay
