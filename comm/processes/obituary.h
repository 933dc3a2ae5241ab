// How the others are told that a process has gone.
#pragma once

#include <sys/types.h>

#include <string>

#include "comm/core/rank_text.h"

namespace ringlet::comm {

/// A process that has gone, or is taken for gone.
struct Deceased {
  int process = 0;
  pid_t pid = 0;
  int replicas = 1;
  std::string host{};         ///< of a run over several machines; else empty
  double silent_seconds = 0;  ///< for which nothing was heard of it; 0: its connection has ended
};

/// "process 1 on b (pid 4711, ranks 2 and 3) died", and what to look for. `names`: what to call
/// ranks.
std::string obituary(const Deceased& deceased, const RankNames::Words& names);

}  // namespace ringlet::comm
