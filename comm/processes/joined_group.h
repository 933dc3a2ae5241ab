// JoinedGroup: a process in a world of several that has joined the others (rendezvous.h), and what
// their transports stand on: who is where, small values for all, memory that they share, and the
// end of all when one fails. ProcessGroup (process_group.h) gives it its transports.
//
// Failures go both ways: what one rank reports with abort(), and the death of any process, ends the
// exchanges of every rank of every process with Aborted, within milliseconds.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <vector>

#include "comm/core/group.h"
#include "comm/core/transport.h"
#include "comm/processes/launch.h"
#include "comm/processes/memory_mesh.h"
#include "comm/processes/remote_status.h"
#include "comm/processes/rendezvous.h"
#include "comm/transport/local/local_transport.h"

namespace ringlet::comm {

/// What joins the ranks of several processes.
enum class ProcessTransport : std::uint8_t {
  shm,        ///< on one machine only
  gloo,       ///< between machines; with several processes on one machine alone, between these
  mpi,        ///< the same
  automatic,  ///< shm on one machine, gloo between several
};

const char* name_of(ProcessTransport transport);  ///< "shm", "gloo", "mpi", "auto"

struct ProcessGroupOptions {
  int replicas = 1;  ///< ranks of this process; the same number in all processes
  double timeout_seconds = Transport::kDefaultTimeoutSeconds;  ///< for joining
  Plan agreed{};  ///< what else must be equal in all processes for them to be one run
  ProcessTransport transport = ProcessTransport::shm;
  /// Takes what the user should know of a run that goes on; in one process.
  std::function<void(const std::string& message)> warn = [](const std::string&) {};
  /// Takes a wish that one of the processes has told. Called on any thread.
  std::function<void(int signal)> on_wish = [](int) {};
  /// Takes what the ranks of this process are called, once that is more than their numbers.
  std::function<void(const std::string& own)> on_names = [](const std::string&) {};
  std::string machine = this_machine();        ///< which one this process is on
  std::string host = host_name();              ///< its name, for messages
  Pulse::Clock::duration beat = Pulse::kBeat;  ///< between machines; the same in all processes
};

class JoinedGroup : public Group {
 public:
  /// Collective over the processes. Throws CommError where this process shall tell the user why
  /// they do not come together, Aborted where another one does.
  JoinedGroup(const ProcessPosition& position, const ProcessGroupOptions& options);
  ~JoinedGroup() override;

  /// The group of this process's ranks, on which their transports stand.
  LocalGroup& local() { return local_; }
  int machines() const override;
  /// Whether a rank is on this process's machine.
  bool on_this_machine(int rank) const;
  /// The processes of this machine, this one too, in their order.
  std::vector<int> processes_here() const;
  /// The address at which other machines reach this one, in numbers.
  const std::string& address() const;
  /// Transport::hosts()
  std::string hosts() const;

  void name_ranks(const RankNames::Words& words) override;
  /// The control plane: small values for all processes.
  Rendezvous& rendezvous() { return *rendezvous_; }
  std::string agree(const std::string& key, const std::optional<std::string>& mine,
                    double timeout_seconds) override;
  std::shared_ptr<void> share(const std::string& key, std::int64_t bytes,
                              double timeout_seconds) override;
  /// Tells all processes that `signal` asks for the end of the run (ProcessGroupOptions::on_wish).
  /// Waits for nobody. Any thread.
  void tell_wish(int signal);
  ClockReading read_clock(double timeout_seconds) override {
    return rendezvous_->read_clock(timeout_seconds);
  }
  /// What the processes hand each other memory over. It is there once they have shared some.
  const MemoryMesh& mesh() const { return *mesh_; }
  /// How many processors the processes of this machine may use together, as of now. Launchers bind
  /// either each to its own ones or all to the same. Collective over the processes. Throws
  /// CommError, Aborted.
  int processors(double timeout_seconds);

  bool abort(int rank, const std::string& message) noexcept override;
  bool aborted() const { return local_.aborted(); }
  std::optional<RootCause> root_cause() const { return local_.root_cause(); }
  /// `wake` gets this process's threads out of waits that know nothing of the group. Called on any
  /// thread once the group is aborted; at once if it is already.
  void on_abort(const std::function<void()>& wake);

  /// For an error that may follow from another one, the news of which is still on its way here.
  /// Waits a few seconds for that; true if the group is aborted then.
  bool await_explanation() const;
  /// After an abort: whether this process shall tell the user of it, for itself or for one that has
  /// died. True in one process of the world.
  bool tells_user() { return rendezvous_->tells_user(); }
  /// Once all ranks of this process have ended: throws the root cause as a CommError where this
  /// process shall tell the user, else as Aborted.
  [[noreturn]] void throw_failure();
  /// The good end: returns when all processes have come to it. Throws Aborted.
  void leave() { rendezvous_->leave(); }

 protected:
  /// Before the transports go.
  void forget_wakers();

 private:
  const Site& site() const;
  void find_machines(ProcessTransport transport);
  std::string status_of_ranks();
  void stop_ranks(const RootCause& cause) noexcept;
  void wake_all() noexcept;

  LocalGroup local_;
  std::function<void(const std::string&)> on_names_;
  std::map<std::string, int> agreed_;  // how often under each key: the rendezvous keeps the first
  int asked_for_processors_ = 0;       // how often
  std::mutex wakers_mutex_;
  std::vector<std::function<void()>> wakers_;
  std::unique_ptr<MemoryMesh> mesh_;
  std::unique_ptr<Rendezvous> rendezvous_;  // its thread uses all of the above
  std::unique_ptr<RemoteStatus> remote_;
};

}  // namespace ringlet::comm
