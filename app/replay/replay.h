// Replay: a traced call, moment by moment: which messages fly when, who waits, and whose numbers
// are where.
//
// A call has two clocks. Real time is the trace's. A step is as far as things depend on each other:
// a message is one step behind what its two ranks did before it, and messages of one step may fly
// side by side. So what a ring of p ranks does are 2 (p-1) steps, whoever was late.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "app/replay/traced_call.h"
#include "comm/schedule/contributions.h"
#include "comm/schedule/schedule.h"

namespace ringlet::app::replay {

/// Bytes [begin, end) of the data. Nothing that moves begins or ends inside of a part.
struct PartRange {
  std::int64_t begin = 0, end = 0;
};

/// A message, or what a rank reads from or writes into another one's memory.
struct Flight {
  int from = 0, to = 0;
  double offered_us = 0;  ///< the sender came
  double begin_us = 0;    ///< both were there
  double end_us = 0;
  int step = 0;  ///< from 1 on
  std::int64_t bytes = 0;
  int out_part = 0, in_part = 0;  ///< the first that is sent, and that is received
  int parts = 0;                  ///< so many; 0: it has no bytes
  bool adds = false;              ///< to what is there, or replaces it
  /// Of a touch that reads from others and then writes to them: 1 and 2. Else 0.
  int half = 0;
  bool arrives = true;  ///< else it was offered, and nobody took it
};

/// What a rank's part holds from now on.
struct StateChange {
  double at_us = 0;
  int step = 0;
  int rank = 0, part = 0;
  int by = 0;       ///< the rank that did it: `rank`, or one that writes its memory
  int sender = -1;  ///< the rank whose message it was; -1: it was reduced from all memories
  bool adds = false;
  comm::Counts has{};  ///< how often the numbers of each rank are in it
};

/// What a rank does in one of its steps: it waits for the others to come, then goes on.
struct Stay {
  int rank = 0;
  std::string
      what{};  ///< "exchange", "send", "receive", "meet", "copy", "direct", "read", "spread"
  int to = -1, from = -1;
  double begin_us = 0;
  double came_us = 0;  ///< until here it waited
  double end_us = 0;
  int step = 0;       ///< 0: it was never done
  bool adds = false;  ///< to what is there
  bool failed = false;
};

struct Replay {
  const TracedCall* call = nullptr;
  std::vector<PartRange> parts{};
  std::vector<Flight> flights{};
  std::vector<StateChange> changes{};              ///< in the order of time
  std::vector<Stay> stays{};                       ///< rank after rank
  std::vector<std::vector<comm::Counts>> final{};  ///< [rank][part]
  int steps = 0;
  std::string stuck{};  ///< why nobody could go on, where that can be told

  comm::Totals totals{};  ///< of the messages that came

  int ranks() const { return call->size(); }
  /// How long each rank waited for others.
  std::vector<double> waited_us() const;
  /// What each part holds after so many steps: [rank][part].
  std::vector<std::vector<comm::Counts>> state_after(int step) const;
};

/// `call` outlives the result. Throws FileError: as schedule_of() does; messages without a partner;
/// times that run backwards.
Replay replay_of(const TracedCall& call);

}  // namespace ringlet::app::replay
