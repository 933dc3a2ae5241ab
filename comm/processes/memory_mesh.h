// MemoryMesh: each process's connections to all others of its machine, over which they hand each
// other memory.
//
// A descriptor goes over a Unix-domain socket (SCM_RIGHTS). The kernel gives the receiver one of
// its own for the same memory. So processes need not see each other in /proc: they may live in
// different PID namespaces, or be closed to each other's looks (PR_SET_DUMPABLE). Both ends ask the
// kernel who the other one is, and talk to their own user only.
//
// Nobody waits here. Who hands memory over does so first and tells the others of it afterwards,
// over the rendezvous or in memory that they share already. So who has heard of it finds it in its
// socket. A process hands over to itself like to any other: its ranks are to each other what they
// are to those of other processes.
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "base/descriptor.h"
#include "comm/processes/message_socket.h"

namespace ringlet::comm {

class Rendezvous;

/// What goes with a descriptor. Numbers are the machine's own, as in a Message.
struct MemoryNote {
  std::int64_t rank = -1;        ///< that shows the memory; -1: it is everybody's
  std::uint64_t memory = 0;      ///< its number in the process that made it, from 1 on
  std::uint64_t instead_of = 0;  ///< the rank's memory that the receiver shall let go of; 0: none
  std::int64_t bytes = 0;
};

struct HandedMemory {
  MemoryNote note;
  Descriptor file;  ///< not open: the receiver has no number left for it
};

class MemoryMesh {
 public:
  /// Collective over the processes of this machine, which are `here` and have so many `replicas`
  /// each, once in a run. Raises this process's limit of open files where they hand over more at
  /// once. Throws CommError, Aborted.
  MemoryMesh(Rendezvous& rendezvous, const std::vector<int>& here, int replicas,
             double timeout_seconds);

  int processes() const { return static_cast<int>(links_.size()); }  ///< of the run
  /// To one that has gone, or is on another machine, nothing is handed; the rendezvous tells of a
  /// death. Any thread. Throws
  /// CommError.
  void hand_over(int process, const MemoryNote& note, int descriptor) const;
  /// The next that `process` has handed over; nothing where there is none. Any thread.
  std::optional<HandedMemory> take(int process) const;

 private:
  void connect(int process, const std::string& name);
  void accept(const MessageSocket& listener);

  int own_;                           // this process
  std::vector<MessageSocket> links_;  // by process; own_: from here
  MessageSocket to_itself_;           // the other end of links_[own_]
};

}  // namespace ringlet::comm
