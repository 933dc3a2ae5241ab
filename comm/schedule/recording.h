// Recording: a strategy runs unchanged, rank after rank, on one thread and on a device without
// memory (kernels/meta_device.h). What it does with its transport becomes a Schedule.
//
// Nothing waits for anybody: an exchange is noted and returns. So a strategy that would never end
// between real ranks is recorded too, and check.h says why it would not.
//
// Kernels of a strategy's own are not noted.
#pragma once

#include <cstdint>
#include <string>

#include "comm/all_reduce/all_reduce.h"
#include "comm/all_reduce/strategies.h"
#include "comm/schedule/network.h"
#include "comm/schedule/schedule.h"

namespace ringlet::comm {

struct Recording {
  std::int64_t count = 0;  ///< elements on each rank
  DType dtype = DType::f32;
  ReduceOp op = ReduceOp::sum;
  int runs = 1;  ///< after each other, of the same objects
  /// Where messages lie, and that the program uses the data before and after each run; of up to
  /// kMostAddressed ranks.
  bool addresses = false;
  std::int64_t window_bytes = 0;  ///< of a rank's windows, as processes have them; 0: as threads
};

/// What each of the network's ranks does. `network` says where ranks are and what by round figures
/// messages cost, which some strategies ask. Throws what the strategy throws: ContractError where
/// it needs a library's engine, or memory in reach that ranks on several machines, or more than 64,
/// have not.
Schedule record(const MakeAllReduce& make, const Network& network, const Recording& what);

/// Why there is no schedule of the strategy on that network, in words; "" where there is one.
std::string why_not_recorded(const Strategy& strategy, const Network& network);

}  // namespace ringlet::comm
