// RendezvousServer: the hub of a run's control plane, a thread of process 0. rendezvous.h has the
// protocol.
//
// The thread never waits for one process: what a socket does not take stays in that process's
// outbox until it does. A connection that says no hello belongs to nobody. It is dropped after some
// seconds, or as soon as everybody has come. What goes wrong in the thread is an abort of the run.
//
// Over TCP anybody on the network may connect. Until a connection has proved that it knows the
// run's token (admission.h) it may send a few KiB, for some seconds, and only some dozens may be in
// that state at once; the others wait in the kernel's queue. Nobody of them is told anything but
// that its token, run or version is another. The run's user is told the same at once, as a warning.
// A stranger's word ends no start: the one whom it claims to be may still come. Only where all
// others are there, and those that are missing were all refused, does the run wait no longer than a
// moment.
#pragma once

#include <poll.h>
#include <sys/types.h>

#include <chrono>
#include <cstddef>
#include <functional>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <thread>
#include <vector>

#include "comm/core/errors.h"
#include "comm/core/rank_text.h"
#include "comm/processes/hello.h"
#include "comm/processes/message_socket.h"
#include "comm/processes/outbox.h"
#include "comm/processes/pulse.h"

namespace ringlet::comm {

/// How the hub of a run serves.
struct HubOptions {
  int processes = 1;                    ///< in all
  std::chrono::nanoseconds patience{};  ///< for those that have to come; then they are named
  Pulse::Clock::duration beat = Pulse::kBeat;
  /// In which those come that were refused at first, or somebody in their name: a launcher has
  /// started all by then.
  std::chrono::milliseconds second_chance{5000};
  std::string run{}, token{};  ///< what a comer over TCP has to bring
  std::string address{};       ///< where it serves, for messages; empty for an abstract name
  /// Takes what the user should know of a run that still waits; on the hub's thread.
  std::function<void(const std::string& message)> warn = [](const std::string&) {};
  /// What messages call ranks; on the hub's thread.
  RankNames::Words name_ranks = [](const std::vector<int>& ranks) { return text_of(ranks); };
};

class RendezvousServer {
 public:
  /// Serves process 0 on `own` and the others on `listener`.
  RendezvousServer(MessageSocket own, MessageSocket listener, const HubOptions& options);
  /// Waits until process 0 has closed the other end of `own`, and a moment more for those that have
  /// yet to read how the run ended; where it ended before all had come, for these too.
  ~RendezvousServer();
  RendezvousServer(const RendezvousServer&) = delete;
  RendezvousServer& operator=(const RendezvousServer&) = delete;

 private:
  using Clock = std::chrono::steady_clock;

  struct Guest {
    MessageSocket socket;
    Clock::time_point came{};
    Hello hello{};                  // its process is negative until it is let in
    std::optional<Message> said{};  // its hello, where a proof has yet to come
    std::string challenge{};
    Outbox outbox{};
    Pulse pulse{};
    bool has_left = false;
    bool is_own = false;
    std::optional<Clock::time_point> told_all{};  // since no more is to be said to it
    int process() const { return hello.process; }
    bool is_stranger() const { return hello.process < 0 && !is_own; }
  };

  struct Refusal {
    std::string why;
    Clock::time_point at;
  };

  void serve() noexcept;
  bool is_done() const;
  bool awaits_latecomers() const;
  void wait_for_events();
  void poll_all(std::vector<pollfd>& waiting) const;
  void admit();
  bool has_room() const;
  void read_from(Guest& guest);
  void hear(Guest& guest, const Message& message);
  void meet(Guest& guest, const Message& message);
  void ask_for_proof(Guest& guest, const Message& said);
  void look_at_proof(Guest& guest, const Message& proof);
  void greet(Guest& guest, Hello hello);
  void compare(const Guest& known, const Guest& comer);
  void refuse(Guest& guest, const Hello& hello, const std::string& why);
  void note_end(const Guest& guest, double silent_seconds = 0);
  void welcome_all();
  std::vector<Site> sites() const;
  void keep_up_pulses();
  void end_if_all_have_left();
  void give_up_on_missing();
  void give_up_on_refused();
  void drop_strays();
  void send_and_part();
  void part(Guest& guest);
  void tell_everybody(const Message& message);
  void pass_on(Message message, int sender);
  void abort_all(const RootCause& cause, int speaker);
  void tell_verdict(Guest& guest);
  std::vector<int> missing() const;
  int present() const;
  bool over_tcp() const { return !options_.address.empty(); }

  MessageSocket listener_;  // closed when everybody has come: the name is free for another run
  MessageSocket spare_;     // given up to tell one more comer that there is no descriptor for it
  HubOptions options_;
  Clock::time_point deadline_;
  std::vector<Guest> guests_;
  bool joining_ = true;
  std::map<int, Refusal> refused_{};  // by the process that it claimed to be; the latest
  std::set<std::string> warned_{};    // what the user was told of those
  std::optional<Message> verdict_{};  // the first abort; those that follow change nothing
  int informed_ = 0;                  // others that were told the verdict
  Clock::time_point open_until_{};    // for those that have yet to hear a verdict of the start
  bool said_farewell_ = false;
  std::optional<Clock::time_point> over_{};  // since process 0 has closed its end
  std::thread thread_;                       // the last member: it uses the others
};

}  // namespace ringlet::comm
