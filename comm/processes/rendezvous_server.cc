#include "comm/processes/rendezvous_server.h"

#include <fmt/format.h>
#include <poll.h>

#include <algorithm>
#include <cstdlib>
#include <exception>
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
      spare_(MessageSocket::make_pair().first),
      processes_(processes),
      deadline_(Clock::now() + patience),
      patience_(patience) {
  const pid_t pid = own.peer_process();
  guests_.push_back({.socket = std::move(own), .pid = pid, .is_own = true});
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
  if (!over_) return false;
  const bool unread = std::any_of(guests_.begin(), guests_.end(),
                                  [](const Guest& guest) { return !guest.outbox.empty(); });
  return !unread || Clock::now() - *over_ > kLastCall;
}

void RendezvousServer::wait_for_events() {
  std::vector<pollfd> waiting;
  for (const Guest& guest : guests_) {
    const int events = guest.outbox.empty() ? POLLIN : POLLIN | POLLOUT;
    waiting.push_back({guest.socket.descriptor(), static_cast<short>(events), 0});
  }
  waiting.push_back({listener_.descriptor(), POLLIN, 0});  // poll leaves out one that is closed
  poll_all(waiting);

  const std::size_t known = guests_.size();
  for (std::size_t i = 0; i < known; ++i) {
    const bool reads = (waiting[i].revents & ~POLLOUT) != 0;
    if (reads && guests_[i].socket.open()) read_from(guests_[i]);
  }
  if (waiting[known].revents != 0) admit();
  drop_strays();
  end_if_all_have_left();
  if (joining_ && Clock::now() >= deadline_) give_up_on_missing();
  send_and_part();
}

/// Returns when something has happened, or when it is time to look who has not come.
void RendezvousServer::poll_all(std::vector<pollfd>& waiting) const {
  using std::chrono::milliseconds;
  constexpr milliseconds kNow(0), kLook(200);
  const auto left = joining_ ? std::chrono::ceil<milliseconds>(deadline_ - Clock::now()) : kLook;
  const auto longest = std::clamp<milliseconds>(left, kNow, kLook).count();
  ::poll(waiting.data(), waiting.size(), joining_ || over_ ? static_cast<int>(longest) : -1);
}

/// Takes in who waits at the door. After an abort they are told of it and no more.
void RendezvousServer::admit() {
  try {
    for (MessageSocket socket = listener_.accept(); socket.open(); socket = listener_.accept()) {
      const pid_t pid = socket.peer_process();
      guests_.push_back({.socket = std::move(socket), .pid = pid, .came = Clock::now()});
      if (!verdict_) continue;
      guests_.back().outbox.push(*verdict_);
      send_and_part();
    }
  } catch (const CommError& error) {
    spare_ = MessageSocket();
    abort_all({0, error.what()}, kHub);
  }
}

void RendezvousServer::read_from(Guest& guest) {
  const std::optional<Message> message = guest.socket.receive();
  const bool is_hello = message && message->kind == Message::Kind::hello;
  const bool is_stranger = guest.process < 0;
  if (!message || is_hello != is_stranger) {  // who speaks before its hello is none of ours
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
      tell_everybody({.kind = Message::Kind::goodbye, .number = guest.process});
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
  drop_strays();
  tell_everybody({.kind = Message::Kind::welcome});
}

/// Looked at whenever anything has happened: who has not said goodbye may have gone without it.
void RendezvousServer::end_if_all_have_left() {
  const bool all_left = std::all_of(guests_.begin(), guests_.end(),
                                    [](const Guest& guest) { return guest.has_left; });
  if (joining_ || verdict_ || !all_left || std::exchange(said_farewell_, true)) return;
  tell_everybody({.kind = Message::Kind::farewell});
}

void RendezvousServer::note_end(const Guest& guest) {
  if (guest.is_own) over_ = Clock::now();  // the others see their own connections end
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

/// Ends connections that have said no hello: of those that never do, and once all have come.
void RendezvousServer::drop_strays() {
  constexpr std::chrono::seconds kLongest(5);
  const Clock::time_point now = Clock::now();
  for (Guest& guest : guests_) {
    const bool silent = guest.process < 0 && !guest.is_own;
    if (silent && !verdict_ && (!joining_ || now - guest.came > kLongest)) {
      guest.socket = MessageSocket();
    }
  }
}

/// Sends what waits, and lets those go that have gone or know of the abort: no more is to be said.
void RendezvousServer::send_and_part() {
  for (Guest& guest : guests_) {
    if (guest.socket.open()) guest.outbox.send_to(guest.socket);
    if (verdict_ && !guest.is_own && guest.outbox.empty()) guest.socket = MessageSocket();
  }
  std::erase_if(guests_, [](const Guest& guest) { return !guest.socket.open(); });
}

void RendezvousServer::tell_everybody(const Message& message) {
  for (Guest& guest : guests_) {
    if (guest.process >= 0) guest.outbox.push(message);
  }
}

void RendezvousServer::abort_all(const RootCause& cause, int speaker) {
  if (verdict_) return;
  verdict_ = abort_message(cause, speaker);
  joining_ = false;
  for (Guest& guest : guests_) guest.outbox.push(*verdict_);
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
