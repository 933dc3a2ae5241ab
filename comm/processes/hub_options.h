// How the hub of a run serves (rendezvous_server.h).
#pragma once

#include <chrono>
#include <string>

#include "comm/processes/pulse.h"

namespace ringlet::comm {

struct HubOptions {
  int processes = 1;                    ///< in all
  std::chrono::nanoseconds patience{};  ///< for those that have to come; then they are named
  Pulse::Clock::duration beat = Pulse::kBeat;
  std::string run{}, token{};  ///< what a comer over TCP has to bring
  std::string address{};       ///< where it serves, for messages; empty for an abstract name
};

}  // namespace ringlet::comm
