// Which transport carries the sums between the replicas: --transport.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "comm/process_group.h"
#include "train/recipe/options.h"

namespace ringlet::train {

/// Resolves execution.transport for its devices and strategy. Throws ContractError, naming the
/// flags, where that is not possible. `automatic` becomes
///   - NCCL, where it can be opened and several replicas have a GPU each, or where the strategy is
///     NCCL's own; else `local`
///   - between processes: NCCL for GPUs; for processors `shm`, or `gloo` or `mpi` where the
///     strategy is Gloo's or MPI's own
TransportChoice choose_transport(const Execution& execution);

/// `execution` with the transport chosen, and with this machine's table where the strategy is
/// `auto`. Made once, before the replicas' threads; they and the reports read it. What is decided
/// stays. Throws ContractError as above, FileError where the table cannot be read.
Execution decided(Execution execution);

/// Whether replicas on these devices may meet over NCCL: where several have a GPU each.
bool may_meet_over_nccl(TransportChoice choice, const std::vector<DeviceId>& devices);

const char* name_of(TransportChoice choice);  ///< "auto", "local", "shm", "gloo", "mpi", "nccl"
/// The names of all, in the order of the choices.
const std::vector<std::string>& transport_names();
/// The transport that a name of transport_names() stands for.
TransportChoice transport_named(std::string_view name);

/// What carries host memory between processes, where there are several.
comm::ProcessTransport process_transport(const Execution& execution);

}  // namespace ringlet::train
