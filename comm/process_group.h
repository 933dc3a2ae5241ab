// ProcessGroup: this process's ranks in a world of several processes, on one machine or on several.
//
// Each process makes one. It joins the others (processes/joined_group.h), then gives each of its
// ranks a transport that reaches the whole world:
//   on one machine         through memory that the processes share (shm_transport.h), or within the
//                          process through a LocalGroup and to other processes through Gloo or
//                          MPI (between_transport.h)
//   on several machines    to other machines through Gloo or MPI, on a machine through shared
//                          memory
#pragma once

#include <memory>
#include <vector>

#include "comm/core/transport.h"
#include "comm/processes/joined_group.h"
#include "comm/processes/launch.h"

namespace ringlet::comm {

class ProcessGroup final : public JoinedGroup {
 public:
  /// Collective over the processes. Throws CommError where this process shall tell the user why
  /// they do not come together, Aborted where another one does.
  ProcessGroup(const ProcessPosition& position, const ProcessGroupOptions& options);
  ~ProcessGroup() override;

  int channels() const override { return static_cast<int>(channels_.size()); }
  Transport& channel(int rank, int number) override;
  void open_channels(int count) override;

 private:
  ConnectChannel connect(ProcessTransport transport, double timeout_seconds);

  ConnectChannel connect_;
  std::vector<std::vector<std::unique_ptr<Transport>>> channels_;  // by local rank
};

}  // namespace ringlet::comm
