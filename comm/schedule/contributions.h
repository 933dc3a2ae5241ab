// Contributions: whose numbers are in which memory, and how often.
//
// In the beginning each rank's data hold its own numbers, once. What is copied replaces what was
// there; what is added, or reduced otherwise, joins it. In the end of an all-reduce all data hold
// everybody's, each once. Numbers of other operations than sums count alike.
#pragma once

#include <cstdint>
#include <functional>
#include <vector>

#include "comm/schedule/schedule.h"

namespace ringlet::comm {

/// How often each rank's numbers are there, in the order of ranks.
using Counts = std::vector<int>;

/// A stretch of a rank's data: bytes [begin, end) from their beginning.
struct Part {
  std::int64_t begin = 0, end = 0;
  Counts counts{};
  bool operator==(const Part&) const = default;
};
/// The parts tile the data. Neighbours may hold the same.
using Parts = std::vector<Part>;

/// What step `step` of `rank`, counted from 0, has changed in the data of `owner`, which is another
/// rank where `rank` writes others' memory.
struct Change {
  int rank = 0;
  std::uint32_t step = 0;
  int owner = 0;
  Parts parts{};
};

/// Before each further run the program writes its own numbers anew (Recording::runs).
/// What each rank's data hold in the end, or where nobody can go on any more. `changed` is told of
/// each change, in an order in which they can happen. Throws ContractError for a schedule without
/// addresses.
std::vector<Parts> contributions_of(const Schedule& schedule,
                                    const std::function<void(const Change&)>& changed = {});

}  // namespace ringlet::comm
