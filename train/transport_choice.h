// Which transport carries the sums between the replicas of this process: --transport.
#pragma once

#include "train/options.h"

namespace ringlet::train {

/// `local` or `nccl`: what execution.transport means for its devices and strategy. `automatic` is
/// NCCL where it can be opened and several replicas have a GPU each, or where the strategy is
/// NCCL's own; else the local transport. Throws ContractError, naming the flags, for what cannot
/// be.
/// `in_processes`: other processes hold more ranks, which only NCCL reaches from a GPU.
TransportChoice choose_transport(const Execution& execution, bool in_processes = false);

const char* name_of(TransportChoice choice);  ///< "auto", "local", "nccl"

}  // namespace ringlet::train
