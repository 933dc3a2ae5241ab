// Worlds of several processes, played by threads: each "process" is a ProcessGroup with its own
// connection to the rendezvous, its own Gloo or its own mapping of the shared memory, and its own
// ranks. So sanitizers see all of them.
#pragma once

#include <unistd.h>

#include <atomic>
#include <memory>
#include <string>
#include <vector>

#include "comm/process_group.h"
#include "comm/transport/gloo/gloo_transport.h"
#include "tests/comm/ranks.h"

namespace ringlet::comm {

/// To be called in SetUp().
inline void skip_without(ProcessTransport transport) {
  if (transport == ProcessTransport::gloo && !has_gloo()) {
    GTEST_SKIP() << "built without Gloo (libgloo-dev)";
  }
}

/// A name that no other run has.
inline std::string new_run() {
  static std::atomic<int> runs{0};
  return "test " + std::to_string(::getpid()) + " " + std::to_string(++runs);
}

struct Split {
  int processes;
  int replicas;
  ProcessTransport transport = ProcessTransport::shm;
  int machines = 1;  ///< that the processes say they are on; the first has the most

  int machine_of(int process) const { return process * machines / processes; }
};

/// "shm 2x3": two processes with three replicas each, over shared memory; "gloo 4x1 on 2": on two
/// machines.
inline std::string name_of(const Split& split) {
  return std::string(name_of(split.transport)) + " " + std::to_string(split.processes) + "x" +
         std::to_string(split.replicas) +
         (split.machines == 1 ? "" : " on " + std::to_string(split.machines));
}

class Processes {
 public:
  explicit Processes(const Split& split)
      : replicas_(split.replicas), groups_(static_cast<std::size_t>(split.processes)) {
    const std::string run = new_run();
    run_ranks(split.processes, [&](int process) {
      ProcessGroupOptions options{
          .replicas = split.replicas, .timeout_seconds = 20, .transport = split.transport};
      if (split.machines > 1) {
        options.host = "host " + std::to_string(split.machine_of(process));
        options.machine = options.host;
      }
      groups_[static_cast<std::size_t>(process)] = std::make_unique<ProcessGroup>(
          ProcessPosition{process, split.processes, run, "test"}, options);
    });
  }
  /// Every group leaves as its process would: by itself, so that none waits for the next.
  ~Processes() {
    run_ranks(static_cast<int>(groups_.size()),
              [&](int process) { groups_[static_cast<std::size_t>(process)].reset(); });
  }
  Processes(const Processes&) = delete;
  Processes& operator=(const Processes&) = delete;

  int size() const { return replicas_ * static_cast<int>(groups_.size()); }
  ProcessGroup& group(int process) { return *groups_[static_cast<std::size_t>(process)]; }
  ProcessGroup& group_of(int rank) { return group(rank / replicas_); }
  Transport& transport(int rank) { return group_of(rank).transport(rank); }
  /// The process ends without a word, as if killed.
  void kill(int process) { groups_[static_cast<std::size_t>(process)].reset(); }

 private:
  int replicas_;
  std::vector<std::unique_ptr<ProcessGroup>> groups_;
};

}  // namespace ringlet::comm
