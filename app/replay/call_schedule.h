// A traced call as a schedule (comm/schedule), which knows whose numbers are where.
//
// Each span of a rank is the step of the same number. The data of the ranks lie one behind the
// other in the schedule's memory. Where ranks copy what they show to windows, each has a window as
// long as its data, in which everything lies at its own place.
#pragma once

#include "app/replay/traced_call.h"
#include "comm/schedule/schedule.h"

namespace ringlet::app::replay {

/// Which sides of exchanges are taken.
enum class Sides {
  meant,   ///< all, also of what failed: why nobody went on can be found out
  arrived  ///< of a call that failed, the messages that came
};

/// Throws FileError where spans are damaged, or where numbers go by way of memory beside the data.
comm::Schedule schedule_of(const TracedCall& call, Sides sides);

/// The ranks' data in the schedule's memory.
comm::Range data_of(const TracedCall& call, int rank);

inline bool sends(const train::TraceSpan& step) {
  return step.peer >= 0 && (step.name == "send" || step.name == "exchange");
}
inline bool receives(const train::TraceSpan& step) { return step.from >= 0 && step.in_bytes >= 0; }

}  // namespace ringlet::app::replay
