// Which ranks wait for each other in a circle, so that none of them will ever go on.
//
// A rank in an exchange waits for its peer where the peer is in an exchange too, and that is not
// the other half of it. Four ranks that all send to the next before they receive, for example:
//
//   0 -> 1 -> 2 -> 3 -> 0: all send, none receives
//
// A message that the rank does not wait for closes no circle: it has left, or goes on its own.
//
// The ranks are looked at one after the other, while they may move. So a circle counts only if all
// of its exchanges have lasted for some time when the first of them was looked at. Then each of
// them was there at the same time, and none can have ended since.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "comm/core/transport.h"

namespace ringlet::comm {

/// What is known of every rank, in the order of ranks; nothing of those that are not of the
/// transport's line.
using StatusOfRanks = std::vector<std::optional<RankStatus>>;
StatusOfRanks look_at_all(const Transport& transport);

/// The circle that `rank` is in, or waits for, in words as above; empty where there is none that
/// has lasted so long.
std::string find_wait_cycle(const StatusOfRanks& status, int rank, std::int64_t lasted_ns);

/// What each rank waits for: "; rank 0 sends 400 bytes to rank 1; rank 2 receives 400 bytes from
/// rank 3; ranks 1 and 3 are in no exchange; nothing is known of rank 4". Those in none are left
/// out where all are.
std::string text_of_exchanges(const StatusOfRanks& status);

}  // namespace ringlet::comm
