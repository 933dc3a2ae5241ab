// What a strategy says of its own cost, against its schedule: chapter 4.
#pragma once

#include "comm/all_reduce/strategies.h"
#include "learn/check/child.h"

namespace ringlet::learn {

/// Concludes where path_cost or elements_sent say something else than what the strategy does.
void check_costs(const comm::Strategy& strategy, Board& board);

}  // namespace ringlet::learn
