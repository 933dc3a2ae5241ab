// Whether the ranks of a schedule come to its end, and if not, why not. Found at once and the same
// each time, whatever lengths a transport would buffer.
#pragma once

#include <cstdint>
#include <string>

#include "comm/schedule/schedule.h"

namespace ringlet::comm {

struct Problem {
  enum class Kind : std::uint8_t {
    none,
    unequal,    ///< a message, or what ranks show each other, has another length than is expected
    circle,     ///< ranks wait for each other
    unmatched,  ///< somebody waits for a rank that does not come
  };
  Kind kind = Kind::none;
  /// unequal    "rank 0 sends 20 bytes to rank 1, which expects 12 (step 3 of rank 0, step 1 of
  ///            rank 1)"
  /// circle     "0 -> 1 -> 2 -> 0: all send, none receives", as wait_cycle.h has it
  /// unmatched  what each waits for: "rank 0 sends 20 bytes to rank 1; rank 1 is in no exchange;
  ///            rank 1 has ended"
  std::string text{};
};

/// The first that the ranks come to. Steps count from 1.
Problem find_problem(const Schedule& schedule);

}  // namespace ringlet::comm
