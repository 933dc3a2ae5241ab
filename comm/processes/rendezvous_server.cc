#include "comm/processes/rendezvous_server.h"

#include <fmt/format.h>
#include <poll.h>

#include <algorithm>
#include <cstdlib>
#include <exception>
#include <utility>

#include "base/trace.h"
#include "comm/core/rank_text.h"
#include "comm/processes/admission.h"
#include "comm/processes/obituary.h"
#include "comm/processes/plan_check.h"
#include "comm/processes/secret.h"

namespace ringlet::comm {

namespace {

constexpr int kHub = 0;  // the process that the server runs in, which speaks for it

}  // namespace

RendezvousServer::RendezvousServer(MessageSocket own, MessageSocket listener,
                                   const HubOptions& options)
    : listener_(std::move(listener)),
      spare_(MessageSocket::make_pair().first),
      options_(options),
      deadline_(Clock::now() + options.patience) {
  guests_.push_back({.socket = std::move(own), .is_own = true});
  thread_ = std::thread([this] { serve(); });
}

RendezvousServer::~RendezvousServer() { thread_.join(); }

void RendezvousServer::serve() noexcept {
  try {
    while (!is_done()) wait_for_events();
  } catch (const std::exception& error) {
    try {
      abort_all({0, fmt::format("process 0 cannot serve the others: {}", error.what())}, kHub);
      send_and_part();
    } catch (const std::exception&) {  // no memory for words: the end of the connections has to do
    }
  }
  guests_.clear();  // also process 0 itself learns by that that nobody serves any more
}

/// What has been decided still goes to those who read it, when process 0 has left already.
bool RendezvousServer::is_done() const {
  constexpr std::chrono::seconds kLastCall(1);
  if (!over_ || awaits_latecomers()) return false;
  const bool unread = std::any_of(guests_.begin(), guests_.end(), [](const Guest& guest) {
    return !guest.outbox.empty() || (guest.socket.is_stream() && !guest.is_stranger());
  });
  return !unread || Clock::now() - *over_ > kLastCall;
}

/// Where the run ended before all had come, the rest is on its way and would wait in vain.
bool RendezvousServer::awaits_latecomers() const {
  return informed_ < options_.processes - 1 && Clock::now() < open_until_;
}

void RendezvousServer::wait_for_events() {
  std::vector<pollfd> waiting;
  for (const Guest& guest : guests_) {
    const int events = guest.outbox.empty() ? POLLIN : POLLIN | POLLOUT;
    waiting.push_back({guest.socket.descriptor(), static_cast<short>(events), 0});
  }
  // poll leaves out one that is closed
  waiting.push_back({has_room() ? listener_.descriptor() : -1, POLLIN, 0});
  poll_all(waiting);

  const std::size_t known = guests_.size();
  for (std::size_t i = 0; i < known; ++i) {
    const bool reads = (waiting[i].revents & ~POLLOUT) != 0;
    if (reads && guests_[i].socket.open()) read_from(guests_[i]);
  }
  if (waiting[known].revents != 0) admit();
  drop_strays();
  keep_up_pulses();
  end_if_all_have_left();
  if (joining_) give_up_on_refused();
  if (joining_ && Clock::now() >= deadline_) give_up_on_missing();
  send_and_part();
}

/// Returns when something has happened, or when it is time to look who has not come.
void RendezvousServer::poll_all(std::vector<pollfd>& waiting) const {
  using std::chrono::milliseconds;
  constexpr milliseconds kNow(0), kLook(200);
  const auto pause = std::chrono::ceil<milliseconds>(Pulse(options_.beat).pause());
  const milliseconds look = over_tcp() ? std::min(kLook, pause) : kLook;
  const auto left = joining_ ? std::chrono::ceil<milliseconds>(deadline_ - Clock::now()) : look;
  const auto longest = std::clamp<milliseconds>(left, kNow, look).count();
  const bool looks = joining_ || over_ || over_tcp();
  ::poll(waiting.data(), waiting.size(), looks ? static_cast<int>(longest) : -1);
}

/// Takes in who waits at the door. After an abort they are told of it and no more.
void RendezvousServer::admit() {
  try {
    while (has_room()) {
      MessageSocket socket = listener_.accept();
      if (!socket.open()) return;
      if (over_tcp()) socket.set_longest(Frames::kLongestOfStranger);
      guests_.push_back(
          {.socket = std::move(socket), .came = Clock::now(), .pulse = Pulse(options_.beat)});
      if (!verdict_ || over_tcp()) continue;
      tell_verdict(guests_.back());
      send_and_part();
    }
  } catch (const CommError& error) {
    spare_ = MessageSocket();
    abort_all({0, error.what()}, kHub);
  }
}

/// Whether one more stranger may come in. On one machine all are of this user.
bool RendezvousServer::has_room() const {
  constexpr auto kMostStrangers = 64;
  return !over_tcp() || std::count_if(guests_.begin(), guests_.end(), [](const Guest& guest) {
                          return guest.is_stranger();
                        }) < kMostStrangers;
}

void RendezvousServer::read_from(Guest& guest) {
  const bool goes_on = guest.socket.fill();
  guest.pulse.hear(Clock::now());
  while (guest.socket.open()) {
    const std::optional<Message> message = guest.socket.next();
    if (!message) break;
    if (!guest.told_all) hear(guest, *message);
  }
  if (!guest.socket.open() || (goes_on && !guest.socket.is_broken())) return;
  if (!guest.told_all) note_end(guest);
  guest.socket = MessageSocket();
}

void RendezvousServer::hear(Guest& guest, const Message& message) {
  if (guest.process() < 0) return meet(guest, message);
  switch (message.kind) {
    case Message::Kind::abort:
      abort_all({message.number, message.value}, guest.process());
      break;
    case Message::Kind::goodbye:
      guest.has_left = true;
      tell_everybody({.kind = Message::Kind::goodbye, .number = guest.process()});
      break;
    case Message::Kind::set:
      tell_everybody(message);
      break;
    case Message::Kind::ask_status:
      tell_everybody({.kind = message.kind, .number = guest.process(), .key = message.key});
      break;
    case Message::Kind::status:
      pass_on(message, guest.process());
      break;
    case Message::Kind::clock:
      guest.outbox.push(
          {.kind = Message::Kind::clock, .key = message.key, .value = std::to_string(now_ns())});
      break;
    case Message::Kind::hello:
    case Message::Kind::proof:  // it is in already: none of our programs says these twice
      note_end(guest);
      guest.socket = MessageSocket();
      break;
    case Message::Kind::welcome:
    case Message::Kind::farewell:
    case Message::Kind::challenge:  // only the server says these
    case Message::Kind::beat:       // read_from() has noted it
      break;
  }
}

/// What somebody says who is not in yet: its hello, and over TCP its proof. Who says anything else
/// is none of ours.
void RendezvousServer::meet(Guest& guest, const Message& message) {
  const auto expected = guest.said ? Message::Kind::proof : Message::Kind::hello;
  if (message.kind != expected) {
    guest.socket = MessageSocket();
  } else if (guest.said) {
    look_at_proof(guest, message);
  } else if (guest.socket.is_stream()) {
    ask_for_proof(guest, message);
  } else {
    Hello hello = hello_of(message);
    hello.pid = guest.socket.peer_process();  // as seen from here
    greet(guest, std::move(hello));
  }
}

void RendezvousServer::ask_for_proof(Guest& guest, const Message& said) {
  const Hello hello = hello_of(said);
  for (const std::string& why :
       {why_of_another_version(hello, options_), why_of_another_run(hello, options_)}) {
    if (!why.empty()) return refuse(guest, hello, why);
  }
  guest.said = said;
  guest.challenge = hexadecimal(new_secret());
  guest.outbox.push({.kind = Message::Kind::challenge, .key = guest.challenge});
}

void RendezvousServer::look_at_proof(Guest& guest, const Message& proof) {
  Hello hello = hello_of(*guest.said);
  const std::string right = comers_proof(options_.token, *guest.said, guest.challenge);
  if (!is_same(right, proof.value)) return refuse(guest, hello, why_without_token(hello, options_));
  greet(guest, std::move(hello));
}

/// It is told why, and so is this process's user. Nobody else hears of it.
void RendezvousServer::refuse(Guest& guest, const Hello& hello, const std::string& why) {
  constexpr std::size_t kMostWarnings = 8;  // strangers may come in any number
  guest.outbox.push(abort_message({0, why}, hello.process));
  guest.told_all = Clock::now();
  if (!joining_) return;
  const bool is_ours = hello.protocol != kProtocol || hello.run == options_.run;
  if (is_ours && hello.process > kHub && hello.process < options_.processes) {
    refused_[hello.process] = {why, Clock::now()};
  }
  if (warned_.size() < kMostWarnings && warned_.insert(why).second) options_.warn(why);
}

void RendezvousServer::greet(Guest& guest, Hello hello) {
  guest.socket.set_longest(sizeof(MessageHeader) + Message::kLongest);
  refused_.erase(hello.process);
  guest.hello = std::move(hello);
  if (verdict_) {
    if (over_tcp()) tell_verdict(guest);
    return;
  }
  if (!guest.hello.failure.empty()) {
    return abort_all({0, why_it_cannot_begin(guest.hello, over_tcp())}, kHub);
  }
  for (const Guest& other : guests_) {
    if (&other != &guest && other.process() >= 0) compare(other, guest);
  }
  if (!verdict_ && present() == options_.processes) welcome_all();
}

void RendezvousServer::compare(const Guest& known, const Guest& comer) {
  const std::string why = why_not_one_run(known.hello, comer.hello, over_tcp());
  if (!why.empty()) abort_all({0, why}, kHub);
}

void RendezvousServer::welcome_all() {
  joining_ = false;
  listener_ = MessageSocket();
  drop_strays();
  Message welcome{.kind = Message::Kind::welcome, .value = table_of(sites())};
  for (Guest& guest : guests_) {
    if (guest.process() < 0) continue;
    if (guest.said) welcome.key = hubs_proof(options_.token, *guest.said, guest.challenge);
    guest.outbox.push(welcome);
  }
}

/// Of all processes, once they are there.
std::vector<Site> RendezvousServer::sites() const {
  std::vector<const Hello*> hellos(static_cast<std::size_t>(options_.processes));
  for (const Guest& guest : guests_) {
    if (guest.process() < 0 || guest.process() >= options_.processes) continue;
    hellos[static_cast<std::size_t>(guest.process())] = &guest.hello;
  }
  std::vector<Site> sites;
  std::vector<std::string> machines;
  for (const Hello* hello : hellos) {
    if (hello == nullptr) throw CommError("a process has a number that the run has not");
    const auto known = std::find(machines.begin(), machines.end(), hello->machine);
    const auto machine = static_cast<int>(known - machines.begin());
    if (known == machines.end()) machines.push_back(hello->machine);
    sites.push_back({machine, hello->pid, hello->host, hello->address});
  }
  return sites;
}

/// Over TCP: says something where nothing was said for a while, and notes who is silent.
void RendezvousServer::keep_up_pulses() {
  if (!over_tcp()) return;
  const Clock::time_point now = Clock::now();
  for (Guest& guest : guests_) {
    guest.pulse.look(now);
    if (guest.process() <= kHub || guest.told_all || !guest.socket.open()) continue;
    if (guest.pulse.is_dead()) {
      note_end(guest, std::chrono::duration<double>(guest.pulse.silence()).count());
      guest.socket = MessageSocket();
    } else if (guest.pulse.is_due(now) && guest.outbox.empty()) {
      guest.outbox.push({.kind = Message::Kind::beat});
    }
  }
}

/// Looked at whenever anything has happened: who has not said goodbye may have gone without it.
void RendezvousServer::end_if_all_have_left() {
  const bool all_left = std::all_of(guests_.begin(), guests_.end(),
                                    [](const Guest& guest) { return guest.has_left; });
  if (joining_ || verdict_ || !all_left || std::exchange(said_farewell_, true)) return;
  tell_everybody({.kind = Message::Kind::farewell});
}

void RendezvousServer::note_end(const Guest& guest, double silent_seconds) {
  if (guest.is_own) over_ = Clock::now();  // the others see their own connections end
  if (guest.process() <= kHub || guest.has_left || verdict_) return;
  const Hello& hello = guest.hello;
  const Deceased deceased{.process = hello.process,
                          .pid = hello.pid,
                          .replicas = hello.replicas,
                          .host = over_tcp() ? hello.host : "",
                          .silent_seconds = silent_seconds};
  abort_all({hello.process * hello.replicas, obituary(deceased, options_.name_ranks)}, kHub);
}

void RendezvousServer::give_up_on_missing() {
  const double seconds = std::chrono::duration<double>(options_.patience).count();
  abort_all({0, fmt::format("{} never came (waited {:g} s{}); start all {} processes of the run",
                            text_of_processes(missing()), seconds,
                            over_tcp() ? " at " + options_.address : "", options_.processes)},
            kHub);
}

/// Where all are there but those that were refused: these have had their moment to come once more.
void RendezvousServer::give_up_on_refused() {
  if (refused_.empty()) return;
  for (const int process : missing()) {
    const auto found = refused_.find(process);
    if (found == refused_.end() || Clock::now() - found->second.at < options_.second_chance) return;
  }
  deadline_ = Clock::now();  // nobody else is awaited
  abort_all({0, refused_.at(missing().front()).why}, kHub);
}

/// Ends connections that have said no hello: of those that never do, and once all have come. Where
/// others wait to be let in, a moment has to do.
void RendezvousServer::drop_strays() {
  constexpr std::chrono::milliseconds kUsual(5000), kMoment(200);
  const auto longest = has_room() ? kUsual : kMoment;
  const Clock::time_point now = Clock::now();
  for (Guest& guest : guests_) {
    const bool silent = guest.is_stranger() && !guest.told_all;
    const bool waits_for_verdict = verdict_ && !(over_tcp() && now - guest.came > longest);
    if (silent && !waits_for_verdict && (!joining_ || now - guest.came > longest)) {
      guest.socket = MessageSocket();
    }
  }
}

/// Sends what waits, and lets those go that have gone or know of the abort: no more is to be said.
void RendezvousServer::send_and_part() {
  for (Guest& guest : guests_) {
    if (guest.socket.open()) guest.outbox.send_to(guest.socket);
    const bool knows = verdict_ && !(over_tcp() && guest.is_stranger());
    const bool is_last = over_ && over_tcp() && !awaits_latecomers();
    if ((knows || guest.told_all || is_last) && !guest.is_own && guest.outbox.empty()) part(guest);
  }
  std::erase_if(guests_, [](const Guest& guest) { return !guest.socket.open(); });
}

/// Who closes a TCP connection on which something has come that was not read resets it, and the
/// other side may lose what was said last. So that side closes it first, or a moment passes.
void RendezvousServer::part(Guest& guest) {
  constexpr std::chrono::seconds kMoment(1);
  const Clock::time_point now = Clock::now();
  if (!guest.told_all) guest.told_all = now;
  guest.socket.finish();
  if (!guest.socket.is_stream() || now - *guest.told_all > kMoment) guest.socket = MessageSocket();
}

void RendezvousServer::tell_everybody(const Message& message) {
  for (Guest& guest : guests_) {
    if (guest.process() >= 0) guest.outbox.push(message);
  }
}

/// To the process that the message's number says. There the number says who sent it.
void RendezvousServer::pass_on(Message message, int sender) {
  const auto whom = std::ranges::find_if(
      guests_, [&message](const Guest& guest) { return guest.process() == message.number; });
  if (whom == guests_.end()) return;  // it has gone
  message.number = sender;
  whom->outbox.push(std::move(message));
}

void RendezvousServer::abort_all(const RootCause& cause, int speaker) {
  constexpr std::chrono::seconds kLatecomers(2);
  if (verdict_) return;
  verdict_ = abort_message(cause, speaker);
  const Clock::time_point now = Clock::now();
  if (joining_ && now < deadline_) open_until_ = now + kLatecomers;
  joining_ = false;
  for (Guest& guest : guests_) {
    if (!over_tcp() || !guest.is_stranger()) tell_verdict(guest);
  }
}

void RendezvousServer::tell_verdict(Guest& guest) {
  guest.outbox.push(*verdict_);
  if (!guest.is_own) ++informed_;
  if (over_) over_ = Clock::now();  // it has the same time to read this
}

std::vector<int> RendezvousServer::missing() const {
  std::vector<int> absent;
  for (int process = 0; process < options_.processes; ++process) {
    const bool here = std::any_of(guests_.begin(), guests_.end(),
                                  [process](const Guest& g) { return g.process() == process; });
    if (!here) absent.push_back(process);
  }
  return absent;
}

int RendezvousServer::present() const {
  return static_cast<int>(std::count_if(guests_.begin(), guests_.end(),
                                        [](const Guest& guest) { return guest.process() >= 0; }));
}

}  // namespace ringlet::comm
