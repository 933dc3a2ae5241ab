// Which transport carries the sums between the replicas: --transport.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "comm/process_group.h"
#include "train/options.h"

namespace ringlet::train {

/// What execution.transport means for its devices and strategy. `automatic` is NCCL where it can be
/// opened and several replicas have a GPU each, or where the strategy is NCCL's own; else `local`.
/// `in_processes`: other processes hold more ranks; `automatic` is then NCCL for GPUs, and `shm`
/// for processors, or `gloo` where the strategy is Gloo's own. Throws ContractError, naming the
/// flags, for what cannot be.
TransportChoice choose_transport(const Execution& execution, bool in_processes = false);

const char* name_of(TransportChoice choice);  ///< "auto", "local", "shm", "gloo", "nccl"
/// The names of all, in the order of the choices.
const std::vector<std::string>& transport_names();
/// What a name of transport_names() stands for.
TransportChoice transport_named(std::string_view name);

/// Whether the transport is for processes only.
bool joins_processes(TransportChoice choice);

/// What carries host memory between processes, where there are several.
comm::ProcessTransport process_transport(TransportChoice choice);

}  // namespace ringlet::train
