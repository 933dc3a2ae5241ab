// on_rank_0(): what rank 0 does alone between steps, such as writing files, while the others wait.
//
// They wait without a time-out: a slow disk is no rank that is missing. Before that all ranks meet
// with the time-out, so that only the work itself may take any time. Where rank 0 fails or dies the
// others stop as ever.
#pragma once

#include <string_view>

#include "comm/communicator.h"
#include "kernels/device.h"

namespace ringlet::train {

/// Collective. `name` as of a collective; `work` is called on rank 0.
template <class Work>
void on_rank_0(comm::Communicator& communicator, Device& device, std::string_view name, Work work) {
  communicator.barrier(device.communication(), name);
  if (communicator.rank() == 0) work();
  communicator.await_all(device.communication(), name);
}

}  // namespace ringlet::train
