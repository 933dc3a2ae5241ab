#include "comm/processes/rendezvous.h"

#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <exception>
#include <sstream>
#include <vector>

#include "base/hash.h"
#include "base/trace.h"
#include "comm/core/rank_text.h"
#include "comm/core/time_out.h"
#include "comm/processes/admission.h"
#include "comm/processes/obituary.h"
#include "comm/processes/rendezvous_server.h"
#include "comm/processes/secret.h"

namespace ringlet::comm {

namespace {

using Clock = std::chrono::steady_clock;

constexpr double kVerdictSeconds = 2;       // that the server may take to decide who tells the user
constexpr double kLastWordsSeconds = 0.6;   // after which all have noticed that process 0 is gone
constexpr double kFirstWordsSeconds = 0.5;  // that process 0 may take to say why it cannot begin
constexpr double kFailureSeconds = 2;       // that a process may take to tell of its own failure
constexpr char kOnePiece = '+', kLastPiece = '.';  // before a piece of a status
constexpr double kServerSlack = 1;  // seconds more, so that the server explains a time-out

/// A socket's name is short, a run's name need not be: a hash stands for it.
std::string socket_name(const std::string& run) {
  return fmt::format("ringlet/{}/{:016x}", ::getuid(), hash_bytes(run.data(), run.size()));
}

}  // namespace

Rendezvous::Rendezvous(const ProcessPosition& position, const RendezvousOptions& options)
    : position_(position), options_(options), name_(socket_name(position.run)), hub_(options.beat) {
  hub_.connect(position_.process == 0 ? serve() : find_hub());
  if (own_address_.empty()) own_address_ = hub_.own_address().host;
  if (hub_.is_local()) hub_.send(to_message(hello()));
  thread_ = std::thread([this] { listen_to_hub(); });
  try {
    join();
  } catch (...) {
    part();
    throw;
  }
}

Hello Rendezvous::hello() const {
  return {.process = position_.process,
          .replicas = options_.replicas,
          .pid = ::getpid(),
          .machine = options_.machine,
          .host = options_.host,
          .address = own_address_,
          .run = position_.run,
          .nonce = {},
          .failure = options_.failure,
          .agreed = options_.agreed};
}

/// Starts the server. Returns this process's own connection to it.
MessageSocket Rendezvous::serve() {
  auto [own, servers] = MessageSocket::make_pair();
  MessageSocket listener = listen();
  server_ = std::make_unique<RendezvousServer>(
      std::move(servers), std::move(listener),
      HubOptions{.processes = position_.processes,
                 .patience = nanoseconds_of(options_.timeout_seconds),
                 .beat = options_.beat,
                 .second_chance = options_.second_chance,
                 .run = position_.run,
                 .token = position_.token,
                 .address = position_.hub ? text_of(*position_.hub) : "",
                 .warn = options_.remind,
                 .name_ranks = options_.name_ranks});
  return std::move(own);
}

MessageSocket Rendezvous::listen() {
  if (position_.hub) {
    MessageSocket listener = MessageSocket::listen(*position_.hub);
    own_address_ = listener.own_address().host;
    look_at_own_address();
    return listener;
  }
  MessageSocket listener = MessageSocket::listen(name_);
  if (!listener.open()) {
    throw CommError(
        fmt::format("another process 0 is waiting for the others of this run ({}); "
                    "give each process a RANK of its own, and each run a MASTER_PORT",
                    position_.run));
  }
  return listener;
}

/// Many machines take their own name for an address of the loopback.
void Rendezvous::look_at_own_address() const {
  if (!is_loopback(own_address_) || is_loopback(position_.hub->host)) return;
  const std::string words = fmt::format(
      "{} is {} on {} itself, where no other machine reaches process 0; name it by its address in "
      "the network (MASTER_ADDR, or RINGLET_HUB=ADDRESS:{}), or mend its /etc/hosts",
      position_.hub->host, own_address_, options_.host, position_.hub->port);
  if (position_.spread) throw CommError(words);
  options_.remind(words);  // all may be on this machine
}

void Rendezvous::part() {
  {
    const std::lock_guard lock(mutex_);
    closing_ = true;
  }
  hub_.shut_down();
  thread_.join();
}

Rendezvous::~Rendezvous() {
  part();
  // The others may be slower to find out: the name stays taken until they must have tried it.
  if (last_words_.open()) std::this_thread::sleep_for(nanoseconds_of(kLastWordsSeconds));
}

MessageSocket Rendezvous::find_hub() {
  const Clock::time_point deadline = Clock::now() + nanoseconds_of(options_.timeout_seconds);
  std::string failure;
  while (true) {
    const auto left = std::chrono::ceil<std::chrono::milliseconds>(deadline - Clock::now());
    if (MessageSocket socket = try_hub(failure, left); socket.open()) return socket;
    if (Clock::now() >= deadline) {
      throw TimeoutError(
          fmt::format("process 0 never came (process {} waited {:g} s; {}{}); start it, "
                      "with the same run's variables as the others",
                      position_.process, options_.timeout_seconds, failure, position_.run));
    }
    constexpr std::chrono::milliseconds kPause(5), kPauseOverTcp(50);
    std::this_thread::sleep_for(position_.hub ? kPauseOverTcp : kPause);
  }
}

/// An empty socket where process 0 is not there yet; over TCP, with what to say of that.
MessageSocket Rendezvous::try_hub(std::string& failure, std::chrono::milliseconds patience) {
  if (!position_.hub) return MessageSocket::connect(name_);
  constexpr std::chrono::milliseconds kLongest(2000);  // a machine that is off does not even refuse
  std::string why;
  MessageSocket socket = MessageSocket::connect(*position_.hub, kLongest, why);
  if (socket.open()) {
    own_address_ = socket.own_address().host;
    why = introduce(socket, patience);
    if (why.empty()) return socket;
  }
  failure = fmt::format("{}: {}; ", text_of(*position_.hub), why);
  return {};
}

/// Says over TCP who this process is, and proves it (admission.h). Returns why what answers is no
/// process 0 of Ringlet's, or "". Throws CommError where it refuses this process.
std::string Rendezvous::introduce(MessageSocket& hub, std::chrono::milliseconds patience) {
  constexpr std::chrono::milliseconds kLongest(10000), kShortest(1000);
  Hello own = hello();
  own.nonce = hexadecimal(new_secret());
  const Message said = to_message(own);
  (void)hub.send(said);
  const auto answer = hub.receive(std::clamp(patience, kShortest, kLongest));
  if (!answer) return "what listens there does not answer as process 0 does";
  if (answer->kind == Message::Kind::abort) throw CommError(answer->value);
  if (answer->kind != Message::Kind::challenge) return "what listens there is no process 0";
  hubs_proof_ = hubs_proof(position_.token, said, answer->key);
  (void)hub.send(
      {.kind = Message::Kind::proof, .value = comers_proof(position_.token, said, answer->key)});
  return "";
}

void Rendezvous::join() {
  {
    std::unique_lock lock(mutex_);
    // The server gives up first and says who is missing.
    wait(lock, options_.timeout_seconds + kServerSlack, [this] { return welcome_ || cause_; });
    if (welcome_ && !cause_) return;
  }
  const std::optional<RootCause> cause = root_cause();
  if (!cause) throw TimeoutError("process 0 does not answer; look for what keeps it");
  if (tells_user()) throw CommError(cause->message);
  throw Aborted(*cause);
}

/// Runs until the connection ends. What fails here is a failure of this process's first rank.
void Rendezvous::listen_to_hub() noexcept {
  try {
    while (const std::optional<Message> message = hub_.receive()) answer(*message);
    note_end_of_hub();
  } catch (const std::exception& error) {  // nobody hears the hub's verdict any more
    const RootCause cause{position_.process * options_.replicas, error.what()};
    abort(cause);
    note_abort(cause, true);
  }
}

void Rendezvous::answer(const Message& message) {
  try {
    handle(message);
  } catch (const std::exception& error) {
    abort({position_.process * options_.replicas, error.what()});
  }
}

void Rendezvous::note_end_of_hub() {
  bool joining = false;
  {
    const std::lock_guard lock(mutex_);
    if (closing_ || farewell_ || cause_) return;
    joining = !welcome_;
  }
  // A process 0 that cannot even begin says why by itself, if it lives.
  if (joining) std::this_thread::sleep_for(nanoseconds_of(kFirstWordsSeconds));
  note_abort({0, obituary_of_hub()}, claim_last_words());
}

std::string Rendezvous::obituary_of_hub() const {
  Deceased hub{.process = 0, .pid = hub_.hubs_process(), .replicas = options_.replicas};
  if (position_.hub) {
    hub.host = sites_.empty() ? text_of(*position_.hub) : sites_.front().host;
    hub.pid = sites_.empty() ? 0 : sites_.front().pid;
  }
  hub.silent_seconds = hub_.silent_seconds();
  return obituary(hub, options_.name_ranks);
}

void Rendezvous::handle(const Message& message) {
  switch (message.kind) {
    case Message::Kind::abort:
      note_abort({message.number, message.value}, message.key == std::to_string(position_.process));
      return;
    case Message::Kind::ask_status:
      tell_status(message);
      return;
    case Message::Kind::welcome:
      if (is_our_hub(message)) break;
      return note_abort({0, fmt::format("what answers at {} does not know RINGLET_TOKEN; look what "
                                        "listens there, or give the run another port",
                                        text_of(*position_.hub))},
                        true);
    default:
      break;
  }
  const std::int64_t come = now_ns();
  {
    const std::lock_guard lock(mutex_);
    if (message.kind == Message::Kind::clock) {
      values_.emplace(message.key, fmt::format("{} {}", message.value, come));
    }
    if (message.kind == Message::Kind::set) values_.emplace(message.key, message.value);
    if (const auto open = answers_.find(message.key);
        message.kind == Message::Kind::status && open != answers_.end() && !message.value.empty()) {
      Answer& answer = open->second.at(static_cast<std::size_t>(message.number));
      answer.text += message.value.substr(1);
      answer.whole = message.value.front() == kLastPiece;
    }
    if (message.kind == Message::Kind::goodbye) at_the_end_.insert(message.number);
    if (message.kind == Message::Kind::welcome) {
      sites_ = sites_of(message.value);
      welcome_ = true;
    }
    if (message.kind == Message::Kind::farewell) farewell_ = true;
  }
  changed_.notify_all();
  if (message.kind == Message::Kind::set) options_.on_value(message.key, message.value);
}

/// To who asked, in as many messages as it takes.
void Rendezvous::tell_status(const Message& question) {
  const std::string status = options_.status();
  const std::size_t longest = Message::kLongest - question.key.size() - 1;
  std::size_t at = 0;
  do {
    const std::string piece = status.substr(at, longest);
    at += piece.size();
    hub_.send({.kind = Message::Kind::status,
               .number = question.number,
               .key = question.key,
               .value = (at < status.size() ? kOnePiece : kLastPiece) + piece});
  } while (at < status.size());
}

/// Whether who bids welcome knows the token too.
bool Rendezvous::is_our_hub(const Message& welcome) const {
  return hub_.is_local() || is_same(hubs_proof_, welcome.key);
}

void Rendezvous::note_abort(const RootCause& cause, bool tells_user) {
  {
    const std::lock_guard lock(mutex_);
    if (cause_) return;
    cause_ = cause;
    tells_user_ = tells_user;
  }
  changed_.notify_all();
  options_.on_abort(cause);
}

/// Process 0 decides which process tells the user. If it has died itself, or hangs, the first
/// process does that takes a name which the kernel gives to one only.
bool Rendezvous::claim_last_words() noexcept {
  try {
    MessageSocket name = MessageSocket::listen(name_ + "/last words");
    const std::lock_guard lock(mutex_);
    if (name.open()) last_words_ = std::move(name);
    return last_words_.open();
  } catch (const std::exception&) {  // then rather twice than never
    return true;
  }
}

void Rendezvous::set(const std::string& key, const std::string& value) {
  hub_.send({.kind = Message::Kind::set, .key = key, .value = value});
}

std::string Rendezvous::get(const std::string& key, double timeout_seconds) {
  std::unique_lock lock(mutex_);
  const bool in_time =
      wait(lock, timeout_seconds, [&] { return cause_ || values_.count(key) > 0; });
  if (cause_) throw Aborted(*cause_);
  if (in_time) return values_.at(key);
  throw TimeoutError(
      fmt::format("process {} waited {:g} s for another one's \"{}\"; look for what keeps it, or "
                  "allow more time with --comm-timeout SECONDS",
                  position_.process, timeout_seconds, key));
}

std::vector<std::string> Rendezvous::ask_status(double timeout_seconds) {
  std::string question;
  {
    const std::lock_guard lock(mutex_);
    question = fmt::format("status {} of process {}", ++questions_, position_.process);
    answers_[question].resize(static_cast<std::size_t>(position_.processes));
  }
  hub_.send({.kind = Message::Kind::ask_status, .key = question});
  std::vector<std::string> texts;
  std::unique_lock lock(mutex_);
  wait(lock, timeout_seconds,
       [&] { return cause_ || std::ranges::all_of(answers_[question], &Answer::whole); });
  for (Answer& answer : answers_[question]) {
    texts.push_back(answer.whole ? std::move(answer.text) : "");
  }
  answers_.erase(question);
  return texts;
}

ClockReading Rendezvous::read_clock(double timeout_seconds) {
  constexpr int kTimes = 16;
  const int own = sites_[static_cast<std::size_t>(position_.process)].machine;
  if (sites_.front().machine == own) return {.at_ns = now_ns()};
  ClockReading best;
  for (int i = 0; i < kTimes; ++i) {
    std::string key;
    {
      const std::lock_guard lock(mutex_);
      key = fmt::format("clock {} of process {}", ++questions_, position_.process);
    }
    const std::int64_t sent = now_ns();
    hub_.send({.kind = Message::Kind::clock, .key = key});
    std::istringstream answer(get(key, timeout_seconds));
    {
      const std::lock_guard lock(mutex_);
      values_.erase(key);
    }
    std::int64_t hub = 0, come = 0;
    answer >> hub >> come;
    const std::int64_t half = (come - sent + 1) / 2;  // the hub looked at its clock in between
    if (i > 0 && half >= best.within_ns) continue;
    best = {.at_ns = sent + half, .ahead_ns = hub - (sent + half), .within_ns = half};
  }
  return best;
}

void Rendezvous::abort(const RootCause& cause) noexcept {
  try {
    {
      const std::lock_guard lock(mutex_);
      if (cause_ || reported_) return;
      reported_ = cause;
    }
    // Where process 0 has gone, what it said before, or its end, is on its way to listen_to_hub().
    hub_.send(abort_message(cause, position_.process));
  } catch (const std::exception&) {  // out of memory: the end of our connection tells the others
  }
}

std::optional<RootCause> Rendezvous::root_cause() const {
  const std::lock_guard lock(mutex_);
  return cause_;
}

bool Rendezvous::tells_user() {
  std::unique_lock lock(mutex_);
  if (!wait(lock, kVerdictSeconds, [this] { return cause_.has_value(); })) {
    const RootCause own = reported_.value_or(RootCause{position_.process * options_.replicas, ""});
    lock.unlock();
    note_abort(own, claim_last_words());
    lock.lock();
  }
  return tells_user_;
}

void Rendezvous::leave() {
  hub_.send({.kind = Message::Kind::goodbye});
  const auto is_over = [this] { return cause_ || farewell_; };
  std::unique_lock lock(mutex_);
  // Without a limit: whoever has died is known at once, and process 0 may be writing a large state.
  for (int times = 1; !wait(lock, options_.remind_seconds, is_over); ++times) {
    lock.unlock();
    remind_of_missing(times * options_.remind_seconds);
    lock.lock();
  }
  if (cause_) throw Aborted(*cause_);
}

/// The first process that has come to the end names those that have not. Where process 0 hangs,
/// none is known to have come.
void Rendezvous::remind_of_missing(double seconds) {
  std::vector<int> missing;
  {
    const std::lock_guard lock(mutex_);
    if (!at_the_end_.empty() && *at_the_end_.begin() != position_.process) return;
    for (int process = 0; process < position_.processes; ++process) {
      if (process != position_.process && !at_the_end_.contains(process))
        missing.push_back(process);
    }
  }
  options_.remind(
      fmt::format("waited {:g} s for {} to come to the end of the run; look for what keeps it",
                  seconds, text_of_processes(missing)));
}

void tell_failure(const ProcessPosition& position, const std::string& why) noexcept {
  constexpr std::size_t kLongest = 4000;  // beside what else a stranger has to say
  try {
    RendezvousOptions options{.timeout_seconds = kFailureSeconds};
    options.failure = shortened(why, kLongest);
    const Rendezvous rendezvous(position, options);
  } catch (const std::exception&) {  // as it has to end: nobody joins who has failed
  }
}

template <class Ready>
bool Rendezvous::wait(std::unique_lock<std::mutex>& lock, double seconds, Ready ready) {
  return changed_.wait_for(lock, nanoseconds_of(seconds), ready);
}

}  // namespace ringlet::comm
