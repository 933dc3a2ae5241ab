// Races: memory that two ranks touch, one of them writing, while nothing says who is first.
//
// What comes before what: a rank's steps one after the other; a message's sending before its
// receiving; what is before a meeting on any rank before what is after it on any other. A sender
// may go on before its message was received: that orders nothing. Found from the order alone, so
// without luck: no rank has to be late.
//
// The program writes each rank's data before the collective and touches them after it. So a rank
// that returns while others still write its data has a race, however quick they are.
#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "comm/schedule/schedule.h"

namespace ringlet::comm {

/// One side of a race.
struct RaceSide {
  int rank = 0;
  std::uint32_t step = 0;  ///< from 0 on
  bool writes = false;
  Touch::Kind kind = Touch::Kind::use;  ///< where the step is a touch
  bool is_message = false;
};

struct Race {
  RaceSide first{};  ///< in the order of the walk, which is one of those that can be
  RaceSide second{};
  int owner = kNobody;              ///< whose data it is; kNobody: other memory
  std::int64_t begin = 0, end = 0;  ///< bytes of these data, or addresses
  /// "bytes 0 to 40 of rank 1's data: rank 1 uses it after the collective while rank 0 reduces
  /// into it (its step 2)"; steps are the collective's own (RankSchedule::own_number())
  std::string text{};
};

/// The first one, or nothing. Throws ContractError for a schedule without addresses.
std::optional<Race> find_race(const Schedule& schedule);

}  // namespace ringlet::comm
