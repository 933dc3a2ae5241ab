#include "comm/process_group.h"

#include <fmt/format.h>

#include <utility>

#include "base/error.h"
#include "comm/core/errors.h"
#include "comm/transport/gloo/gloo_transport.h"
#include "comm/transport/mpi/mpi_transport.h"
#include "comm/transport/shm/shm_transport.h"

namespace ringlet::comm {

ProcessGroup::ProcessGroup(const ProcessPlace& place, const ProcessGroupOptions& options)
    : JoinedGroup(place, options) {
  try {
    transports_ = connect(options.transport, options.timeout_seconds);
  } catch (...) {
    abort(first_rank(), message_of_current_exception());
    throw_failure();
  }
}

// Threads of the transports ask the rendezvous for other ranks, and its thread wakes transports: so
// it forgets how, before they go.
ProcessGroup::~ProcessGroup() {
  forget_wakers();
  transports_.clear();
}

std::vector<std::unique_ptr<Transport>> ProcessGroup::connect(ProcessTransport transport,
                                                              double timeout_seconds) {
  const bool by_mpi = transport == ProcessTransport::mpi;
  if (machines() == 1 && !by_mpi && transport != ProcessTransport::gloo) {
    return connect_shm(*this, timeout_seconds);
  }
  if (machines() > 1 && !by_mpi && !has_gloo()) {
    throw CommError(
        fmt::format("this build has no Gloo, which joins processes on several machines ({}); "
                    "install libgloo-dev (sudo apt-get install libgloo-dev) and build anew on all, "
                    "or start with mpirun and --transport mpi",
                    hosts()));
  }
  std::vector<std::unique_ptr<Transport>> on_machine;
  const bool has_neighbours = machines() > 1 && processes_here().size() > 1;
  if (has_neighbours) on_machine = connect_shm(*this, timeout_seconds);
  if (by_mpi) return connect_mpi(*this, std::move(on_machine));
  return connect_gloo(*this, timeout_seconds, std::move(on_machine));
}

Transport& ProcessGroup::transport(int rank) {
  require(holds(rank), "ProcessGroup::transport", "the rank is in another process");
  return *transports_[static_cast<std::size_t>(rank - first_rank())];
}

}  // namespace ringlet::comm
