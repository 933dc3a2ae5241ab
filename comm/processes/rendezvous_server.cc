#include "comm/processes/rendezvous_server.h"

#include <fmt/format.h>
#include <poll.h>

#include <algorithm>
#include <cstdlib>
#include <utility>

#include "comm/processes/plan_check.h"
#include "comm/report/rank_text.h"

namespace ringlet::comm {

namespace {

constexpr int kHub = 0;  // the process that the server runs in, which speaks for it

/// The first entry in which `mine` differs from `first`'s, in words; empty if none does.
std::string difference(const std::string& first_text, int process, const std::string& text) {
  const Plan first = plan_of(first_text), mine = plan_of(text);
  for (std::size_t i = 0; i < std::min(first.size(), mine.size()); ++i) {
    if (first[i] == mine[i]) continue;
    return fmt::format(
        "the processes do not agree on {}: process {} has {}, process {} has {}; "
        "start all with the same flags",
        first[i].first, kHub, first[i].second, process, mine[i].second);
  }
  return "";
}

}  // namespace

std::string obituary(int process, pid_t pid, int replicas) {
  std::vector<int> ranks;
  for (int i = 0; i < replicas; ++i) ranks.push_back(process * replicas + i);
  return fmt::format("process {} (pid {}, {}) died; the system's log may say why (dmesg)", process,
                     pid, text_of(ranks));
}

RendezvousServer::RendezvousServer(MessageSocket own, MessageSocket listener, int processes,
                                   std::chrono::nanoseconds patience)
    : listener_(std::move(listener)),
      processes_(processes),
      deadline_(Clock::now() + patience),
      patience_(patience) {
  const pid_t pid = own.peer_process();
  guests_.push_back({.socket = std::move(own), .pid = pid, .is_own = true});
  thread_ = std::thread([this] { serve(); });
}

RendezvousServer::~RendezvousServer() { thread_.join(); }

void RendezvousServer::serve() {
  while (!over_) wait_for_events();
}

void RendezvousServer::wait_for_events() {
  std::vector<pollfd> waiting;
  for (const Guest& guest : guests_) waiting.push_back({guest.socket.descriptor(), POLLIN, 0});
  if (joining_) waiting.push_back({listener_.descriptor(), POLLIN, 0});
  const auto left = std::chrono::ceil<std::chrono::milliseconds>(deadline_ - Clock::now());
  const auto longest = std::clamp<std::int64_t>(left.count(), 0, 1'000'000);
  ::poll(waiting.data(), waiting.size(), joining_ ? static_cast<int>(longest) : -1);

  const std::size_t known = guests_.size();
  for (std::size_t i = 0; i < known; ++i) {
    if (waiting[i].revents != 0) read_from(guests_[i]);
  }
  if (joining_ && waiting.size() > known && waiting[known].revents != 0) {
    if (MessageSocket socket = listener_.accept(); socket.open()) {
      const pid_t pid = socket.peer_process();
      guests_.push_back({std::move(socket), pid});
    }
  }
  std::erase_if(guests_, [](const Guest& guest) { return !guest.socket.open(); });
  if (joining_ && Clock::now() >= deadline_) give_up_on_missing();
}

void RendezvousServer::read_from(Guest& guest) {
  const std::optional<Message> message = guest.socket.receive();
  if (!message) {
    note_end(guest);
    guest.socket = MessageSocket();
    return;
  }
  switch (message->kind) {
    case Message::Kind::hello:
      greet(guest, *message);
      break;
    case Message::Kind::abort:
      abort_all({message->number, message->value}, guest.process);
      break;
    case Message::Kind::goodbye:
      guest.has_left = true;
      if (!verdict_ &&
          std::all_of(guests_.begin(), guests_.end(), [](const Guest& g) { return g.has_left; })) {
        tell_everybody({.kind = Message::Kind::farewell});
      }
      break;
    case Message::Kind::set:
    case Message::Kind::ask_status:
      tell_everybody(*message);
      break;
    case Message::Kind::welcome:
    case Message::Kind::farewell:
      break;  // only the server says these
  }
}

void RendezvousServer::greet(Guest& guest, const Message& hello) {
  guest.process = hello.number;
  constexpr int kMostReplicas = 4096;  // whatever the other side says
  guest.replicas = std::clamp(std::atoi(hello.key.c_str()), 0, kMostReplicas);
  guest.agreed = hello.value;
  if (verdict_) {
    (void)guest.socket.send(*verdict_);
    return;
  }
  for (const Guest& other : guests_) {
    if (&other != &guest && other.process >= 0) compare(other, guest);
  }
  if (!verdict_ && present() == processes_) welcome_all();
}

void RendezvousServer::compare(const Guest& known, const Guest& comer) {
  if (known.process == comer.process) {
    const std::string twice = fmt::format(
        "two processes say that they are process {} (pids {} and {}); each needs a "
        "RANK of its own",
        comer.process, known.pid, comer.pid);
    return abort_all({0, twice}, kHub);
  }
  const Guest& hub = known.process == kHub ? known : comer;
  const Guest& other = known.process == kHub ? comer : known;
  if (hub.process != kHub) return;  // the two are compared with process 0 instead
  const std::string differs = difference(hub.agreed, other.process, other.agreed);
  if (!differs.empty()) abort_all({0, differs}, kHub);
}

void RendezvousServer::welcome_all() {
  joining_ = false;
  listener_ = MessageSocket();
  tell_everybody({.kind = Message::Kind::welcome});
}

void RendezvousServer::note_end(const Guest& guest) {
  over_ = over_ || guest.is_own;  // the others see their own connections end
  if (guest.process <= kHub || guest.has_left || verdict_) return;
  abort_all({guest.process * guest.replicas, obituary(guest.process, guest.pid, guest.replicas)},
            kHub);
}

void RendezvousServer::give_up_on_missing() {
  const double seconds = std::chrono::duration<double>(patience_).count();
  abort_all({0, fmt::format("{} never came (waited {:g} s); start all {} processes of the run",
                            missing(), seconds, processes_)},
            kHub);
}

void RendezvousServer::tell_everybody(const Message& message) {
  for (const Guest& guest : guests_) {
    // Who has gone, or does not read, is noticed as the end of its connection or by a time-out.
    if (guest.process >= 0 && guest.socket.open()) (void)guest.socket.send(message);
  }
}

void RendezvousServer::abort_all(const RootCause& cause, int speaker) {
  if (verdict_) return;
  verdict_ = Message{.kind = Message::Kind::abort,
                     .number = cause.rank,
                     .key = std::to_string(speaker),
                     .value = cause.message};
  joining_ = false;
  listener_ = MessageSocket();
  tell_everybody(*verdict_);
}

std::string RendezvousServer::missing() const {
  std::vector<int> absent;
  for (int process = 0; process < processes_; ++process) {
    const bool here = std::any_of(guests_.begin(), guests_.end(),
                                  [process](const Guest& g) { return g.process == process; });
    if (!here) absent.push_back(process);
  }
  return text_of_processes(absent);
}

int RendezvousServer::present() const {
  return static_cast<int>(std::count_if(guests_.begin(), guests_.end(),
                                        [](const Guest& guest) { return guest.process >= 0; }));
}

}  // namespace ringlet::comm
