#include "comm/process_group.h"

#include <utility>

#include "base/error.h"
#include "comm/core/errors.h"
#include "comm/transport/gloo/gloo_transport.h"
#include "comm/transport/mpi/mpi_transport.h"
#include "comm/transport/shm/shm_transport.h"

namespace ringlet::comm {

ProcessGroup::ProcessGroup(const ProcessPosition& position, const ProcessGroupOptions& options)
    : JoinedGroup(position, options) {
  try {
    connect_ = connect(options.transport, options.timeout_seconds);
    channels_.push_back(connect_(0));
  } catch (...) {
    abort(first_rank(), message_of_current_exception());
    throw_failure();
  }
}

// Threads of the transports ask the rendezvous for other ranks, and its thread wakes transports: so
// it forgets how, before they go.
ProcessGroup::~ProcessGroup() {
  forget_wakers();
  channels_.clear();
  connect_ = nullptr;
}

ConnectChannel ProcessGroup::connect(ProcessTransport transport, double timeout_seconds) {
  const bool by_mpi = transport == ProcessTransport::mpi;
  if (machines() == 1 && !by_mpi && transport != ProcessTransport::gloo) {
    return connect_shm(*this, timeout_seconds);
  }
  if (machines() > 1 && !by_mpi) require_gloo_between(hosts());
  ConnectChannel on_machine;
  const bool has_neighbours = machines() > 1 && processes_here().size() > 1;
  if (has_neighbours) on_machine = connect_shm(*this, timeout_seconds);
  if (by_mpi) return connect_mpi(*this, timeout_seconds, std::move(on_machine));
  return connect_gloo(*this, timeout_seconds, std::move(on_machine));
}

Transport& ProcessGroup::channel(int rank, int number) {
  require(holds(rank), "ProcessGroup::transport", "the rank is in another process");
  require(0 <= number && number < channels(), "ProcessGroup::channel", "there is no such channel");
  return *channels_[static_cast<std::size_t>(number)]
                   [static_cast<std::size_t>(rank - first_rank())];
}

void ProcessGroup::open_channels(int count) {
  local().open_channels(count);
  try {
    while (channels() < local().channels()) channels_.push_back(connect_(channels()));
  } catch (...) {
    abort(first_rank(), message_of_current_exception());
    throw;
  }
}

}  // namespace ringlet::comm
