// Rendezvous: the control plane of a run in several processes. Data goes elsewhere.
//
// Process 0 serves on a Unix-domain socket whose abstract name stands for the user and the run, or,
// where the processes may be on several machines (ProcessPosition::hub), over TCP
// (message_socket.h). All processes connect to it and keep the connection for the whole run:
//
//   hello       process, replicas, machine, run,           ->   welcome with the table of all
//               what all must agree on                          processes, once all have come; over
//                                                               TCP a challenge and a proof before
//                                                               (admission.h)
//               or that it has failed, and why           ->   everybody stops (tell_failure())
//   set         key, value                                 ->   everybody has it
//   ask_status  key                                        ->   everybody is asked
//   status      who asked, key, a piece of its ranks'      ->   who asked has it
//               status
//   clock       key                                        ->   the same with the hub's time, to
//                                                               who asked
//   abort       rank, message                              ->   everybody stops; the first counts
//   goodbye                                                ->   everybody knows who is at the end;
//                                                               farewell, once all are
//
// Nobody waits to send (outbox.h): neither the server for a process that does not read, nor a
// process for a server that does not. An abort goes before what waits.
//
// The end of a connection without goodbye means that the process has died: the server aborts the
// others in its name. If process 0 dies, every other one sees its own connection end and knows.
// So a death is known within milliseconds, and nobody has to wait for a time-out. A connection that
// has said no hello may be anybody's, and its end means nothing. Over TCP silence means death as
// well (pulse.h).
//
// TCP is for a network that is trusted: the token keeps strangers and other runs out, but what is
// said is neither encrypted nor sealed. A comer takes what answers for its process 0 only once it
// has asked for a proof; before that it tries again until its time is up.
//
// Several processes may report a cause at the same time. The server takes the first and says which
// process shall tell the user: the one that had the failure, or process 0 for one that has died. So
// the user reads it once.
#pragma once

#include <chrono>
#include <condition_variable>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <set>
#include <string>
#include <thread>
#include <vector>

#include "base/machine.h"
#include "comm/core/clock_reading.h"
#include "comm/core/errors.h"
#include "comm/core/rank_text.h"
#include "comm/processes/hello.h"
#include "comm/processes/hub_line.h"
#include "comm/processes/launch.h"
#include "comm/processes/message_socket.h"
#include "comm/processes/plan_check.h"
#include "comm/processes/rendezvous_server.h"

namespace ringlet::comm {

struct RendezvousOptions {
  int replicas = 1;             ///< ranks of this process; the same number in all processes
  double timeout_seconds = 60;  ///< longest wait for a process that has to come
  Plan agreed{};                ///< what must be equal in all processes for them to be one run
  /// Why this process cannot take part: it comes to say only that (tell_failure()).
  std::string failure{};
  /// Called once, on the rendezvous's own thread, when the run is given up.
  std::function<void(const RootCause&)> on_abort = [](const RootCause&) {};
  /// This process's answer to ask_status(), called on the rendezvous's own thread.
  std::function<std::string()> status = [] { return std::string(); };
  /// What messages call ranks; any thread.
  RankNames::Words name_ranks = [](const std::vector<int>& ranks) { return text_of(ranks); };
  /// Takes each value that a process sets, on the rendezvous's own thread.
  std::function<void(const std::string& key, const std::string& value)> on_value =
      [](const std::string&, const std::string&) {};
  /// Takes what the user should know of a run that goes on: in leave(), in one process, every
  /// `remind_seconds` that others keep it waiting.
  std::function<void(const std::string& message)> remind = [](const std::string&) {};
  double remind_seconds = 60;
  std::string machine = this_machine();        ///< which one this process is on
  std::string host = host_name();              ///< its name, for messages
  Pulse::Clock::duration beat = Pulse::kBeat;  ///< over TCP; the same in all processes
  std::chrono::milliseconds second_chance = HubOptions{}.second_chance;
};

class Rendezvous {
 public:
  /// Returns when all processes of the run have come. Throws CommError where this process shall
  /// tell the user why they do not, and Aborted where another one does.
  Rendezvous(const ProcessPosition& position, const RendezvousOptions& options);
  ~Rendezvous();
  Rendezvous(const Rendezvous&) = delete;
  Rendezvous& operator=(const Rendezvous&) = delete;

  const ProcessPosition& position() const { return position_; }
  /// All processes, in their order.
  const std::vector<Site>& sites() const { return sites_; }

  /// Gives all processes a value; the first under a key stays. Throws CommError if both are longer
  /// than Message::kLongest. Any thread.
  void set(const std::string& key, const std::string& value);
  /// Waits for the value. Throws TimeoutError naming the key, or Aborted. Any thread but the
  /// handlers'.
  std::string get(const std::string& key, double timeout_seconds);
  /// What `options.status` gives in each process; "" for those that do not answer in time.
  std::vector<std::string> ask_status(double timeout_seconds);

  /// Asks the hub for its time, several times; the answer that took the shortest counts. On the
  /// hub's machine both have one clock. Throws TimeoutError, Aborted. Any thread but the handlers'.
  ClockReading read_clock(double timeout_seconds);

  /// Gives the run up. Only the first cause in the whole run counts. Any thread, never blocks.
  void abort(const RootCause& cause) noexcept;
  std::optional<RootCause> root_cause() const;
  /// After an abort: whether this process shall tell the user of root_cause(). Waits, for a moment
  /// at most, until that has been decided.
  bool tells_user();

  /// The good end: returns when all processes have come to it. Throws Aborted.
  void leave();

 private:
  /// To ask_status(), in pieces.
  struct Answer {
    std::string text;
    bool whole = false;
  };

  MessageSocket serve();
  MessageSocket listen();
  void look_at_own_address() const;
  MessageSocket find_hub();
  MessageSocket try_hub(std::string& failure, std::chrono::milliseconds patience);
  std::string introduce(MessageSocket& hub, std::chrono::milliseconds patience);
  bool is_our_hub(const Message& welcome) const;
  Hello hello() const;
  std::string obituary_of_hub() const;
  void join();
  void listen_to_hub() noexcept;
  void answer(const Message& message);
  void handle(const Message& message);
  void tell_status(const Message& question);
  void note_end_of_hub();
  void note_abort(const RootCause& cause, bool tells_user);
  bool claim_last_words() noexcept;
  void remind_of_missing(double seconds);
  void part();
  template <class Ready>
  bool wait(std::unique_lock<std::mutex>& lock, double seconds, Ready ready);

  ProcessPosition position_;
  RendezvousOptions options_;
  std::string name_;
  std::unique_ptr<RendezvousServer> server_;  // in process 0; ends with its connection to itself
  HubLine hub_;
  std::string own_address_;
  std::string hubs_proof_;   // that the welcome has to bring; empty where nobody has to prove
  std::vector<Site> sites_;  // written before welcome_ is

  mutable std::mutex mutex_;  // guards the following
  std::condition_variable changed_;
  MessageSocket last_words_;  // held by the process that speaks where process 0 does not
  std::map<std::string, std::string> values_;
  std::map<std::string, std::vector<Answer>> answers_;  // of each process, to an open question
  std::set<int> at_the_end_;                            // processes that have said goodbye
  std::optional<RootCause> reported_;                   // by this process, to the hub
  std::optional<RootCause> cause_;
  bool tells_user_ = false;
  bool welcome_ = false;
  bool farewell_ = false;
  bool closing_ = false;
  int questions_ = 0;

  std::thread thread_;  // the last member: it uses the others
};

/// For a process that ends before it has met the others: tells them why, so that they end as well.
/// It waits a moment for process 0, or as process 0 for all others; whoever comes later learns
/// nothing. `why` may be cut.
void tell_failure(const ProcessPosition& position, const std::string& why) noexcept;

}  // namespace ringlet::comm
