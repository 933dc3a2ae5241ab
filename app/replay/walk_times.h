// What a walk through a call's schedule says beside the numbers: which message met which, in which
// step, and who waited until when.
#pragma once

#include <vector>

#include "app/replay/replay.h"
#include "comm/schedule/schedule.h"

namespace ringlet::app::replay {

struct WalkedMessage {
  int from = 0, to = 0;
  std::size_t out_step = 0, in_step = 0;  ///< of the sender and of the receiver
  int step = 0;
};

struct Walked {
  std::vector<WalkedMessage> messages{};
  std::vector<Stay> stays{};
  std::vector<std::size_t> first_stay{};  ///< of each rank; one more at the end
  int steps = 0;
  bool ended = false;

  const Stay& stay(int rank, std::size_t number) const {
    return stays[first_stay[static_cast<std::size_t>(rank)] + number];
  }
};

/// `schedule` is that of `call`.
Walked walk(const TracedCall& call, const comm::Schedule& schedule);

}  // namespace ringlet::app::replay
