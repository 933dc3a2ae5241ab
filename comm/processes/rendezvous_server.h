// RendezvousServer: the hub of a run's control plane, a thread of process 0. rendezvous.h has the
// protocol.
//
// The thread never waits for one process: what a socket does not take stays in that process's
// outbox until it does. A connection that says no hello belongs to nobody. It is dropped after some
// seconds, or as soon as everybody has come. What goes wrong in the thread is an abort of the run.
#pragma once

#include <poll.h>
#include <sys/types.h>

#include <chrono>
#include <cstddef>
#include <optional>
#include <string>
#include <thread>
#include <vector>

#include "comm/errors.h"
#include "comm/processes/message_socket.h"
#include "comm/processes/outbox.h"

namespace ringlet::comm {

/// "process 1 (pid 4711, ranks 2 and 3) died"
std::string obituary(int process, pid_t pid, int replicas);

class RendezvousServer {
 public:
  /// Serves process 0 on `own` and the others, `processes` in all, on `listener`; those that have
  /// not come after `patience` are named to the rest as missing.
  RendezvousServer(MessageSocket own, MessageSocket listener, int processes,
                   std::chrono::nanoseconds patience);
  /// Waits until process 0 has closed the other end of `own`, and a moment more for those that have
  /// yet to read how the run ended.
  ~RendezvousServer();
  RendezvousServer(const RendezvousServer&) = delete;
  RendezvousServer& operator=(const RendezvousServer&) = delete;

 private:
  using Clock = std::chrono::steady_clock;

  struct Guest {
    MessageSocket socket;
    pid_t pid = 0;
    Clock::time_point came{};
    int process = -1;  // until its hello
    int replicas = 0;
    std::string agreed{};
    Outbox outbox{};
    bool has_left = false;
    bool is_own = false;
  };

  void serve() noexcept;
  bool is_done() const;
  void wait_for_events();
  void poll_all(std::vector<pollfd>& waiting) const;
  void admit();
  void read_from(Guest& guest);
  void greet(Guest& guest, const Message& hello);
  void compare(const Guest& known, const Guest& comer);
  void note_end(const Guest& guest);
  void welcome_all();
  void end_if_all_have_left();
  void give_up_on_missing();
  void drop_strays();
  void send_and_part();
  void tell_everybody(const Message& message);
  void abort_all(const RootCause& cause, int speaker);
  std::string missing() const;
  int present() const;

  MessageSocket listener_;  // closed when everybody has come: the name is free for another run
  MessageSocket spare_;     // given up to tell one more comer that there is no descriptor for it
  int processes_;
  Clock::time_point deadline_;
  std::chrono::nanoseconds patience_;
  std::vector<Guest> guests_;
  bool joining_ = true;
  std::optional<Message> verdict_{};  // the first abort; those that follow change nothing
  bool said_farewell_ = false;
  std::optional<Clock::time_point> over_{};  // since process 0 has closed its end
  std::thread thread_;                       // the last member: it uses the others
};

}  // namespace ringlet::comm
