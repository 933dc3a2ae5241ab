#include "comm/processes/peer_sockets.h"

#include <fmt/format.h>
#include <poll.h>
#include <sys/socket.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <chrono>
#include <cstdint>
#include <cstring>
#include <string_view>
#include <type_traits>
#include <utility>

#include "comm/core/errors.h"
#include "comm/core/rank_text.h"
#include "comm/core/time_out.h"
#include "comm/processes/secret.h"
#include "comm/processes/tcp_socket.h"

namespace ringlet::comm {

namespace {

using Clock = std::chrono::steady_clock;
using std::chrono::milliseconds;

/// What comes first on a connection, before any data.
struct Greeting {
  std::int32_t from = -1;
  std::int32_t to = -1;
  std::array<char, kProofBytes> proof{};
};
static_assert(std::is_trivially_copyable_v<Greeting> && sizeof(Greeting) == 8 + kProofBytes);

Greeting greeting(const std::string& secret, int from, int to) {
  Greeting greeting{.from = from, .to = to};
  const std::string bytes = proof(secret, fmt::format("ringlet data from {} to {}", from, to));
  std::copy(bytes.begin(), bytes.end(), greeting.proof.begin());
  return greeting;
}

/// Somebody who has connected and has not yet shown who it is.
struct Comer {
  Descriptor socket;
  Clock::time_point came = Clock::now();
  std::array<char, sizeof(Greeting)> bytes{};
  std::size_t got = 0;
};

class Meeting {
 public:
  Meeting(Rendezvous& rendezvous, const std::string& address, double timeout_seconds);
  std::vector<Descriptor> run();

 private:
  static std::string key_of(int process) { return fmt::format("data of process {}", process); }
  void connect_to(int process);
  void accept_all();
  void wait_for_comers();
  void admit();
  void read_from(Comer& comer);
  void take(Comer& comer);
  void drop_silent();
  bool has_room() const { return comers_.size() < kMostComers; }
  std::vector<int> missing() const;
  void look_at_end() const;

  static constexpr std::size_t kMostComers = 64;

  Rendezvous& rendezvous_;
  double timeout_seconds_;
  Clock::time_point deadline_;
  int own_;
  std::string secret_;
  Descriptor listener_;
  std::vector<Comer> comers_;
  std::vector<Descriptor> sockets_;
};

Meeting::Meeting(Rendezvous& rendezvous, const std::string& address, double timeout_seconds)
    : rendezvous_(rendezvous),
      timeout_seconds_(timeout_seconds),
      deadline_(Clock::now() + nanoseconds_of(timeout_seconds)),
      own_(rendezvous.position().process),
      sockets_(static_cast<std::size_t>(rendezvous.position().processes)) {
  std::string failure;
  listener_ = Descriptor(listen_tcp({address, 0}, failure));
  if (!listener_.open()) throw CommError(fmt::format("no port of {}: {}", address, failure));
  const TcpAddress own = own_address_of(listener_.get());
  rendezvous_.set(key_of(own_), fmt::format("{} {}", own.port, own.host));
}

std::vector<Descriptor> Meeting::run() {
  const std::string key = "secret of the data";
  if (own_ == 0) rendezvous_.set(key, new_secret());
  // Who has heard the one over the network still needs the run's token, if it has any.
  secret_ = proof(rendezvous_.position().token, rendezvous_.get(key, timeout_seconds_));
  for (int process = 0; process < own_; ++process) connect_to(process);
  accept_all();
  return std::move(sockets_);
}

void Meeting::connect_to(int process) {
  const std::string where = rendezvous_.get(key_of(process), timeout_seconds_);
  const std::size_t blank = std::min(where.find(' '), where.size());
  const TcpAddress address{where.substr(std::min(blank + 1, where.size())),
                           parse_port(where.substr(0, blank)).value_or(0)};
  constexpr milliseconds kSlice(1000);
  std::string failure;
  Descriptor socket;
  while (!socket.open()) {
    look_at_end();
    const Clock::time_point begin = Clock::now();
    socket = Descriptor(connect_tcp(address, kSlice, failure));
    const bool only_slow = Clock::now() - begin >= kSlice && Clock::now() < deadline_;
    if (!socket.open() && !only_slow) {
      throw CommError(fmt::format("process {} at {}: {}", process, text_of(address), failure));
    }
  }
  const Greeting said = greeting(secret_, own_, process);
  // A new connection takes so few bytes at once. Where it has broken already, its reader says so.
  (void)::send(socket.get(), &said, sizeof said, MSG_NOSIGNAL);
  sockets_[static_cast<std::size_t>(process)] = std::move(socket);
}

void Meeting::accept_all() {
  while (!missing().empty()) {
    look_at_end();
    if (Clock::now() >= deadline_) {
      throw CommError(fmt::format("nothing came from {} in {:g} s", text_of_processes(missing()),
                                  timeout_seconds_));
    }
    wait_for_comers();
  }
}

void Meeting::wait_for_comers() {
  constexpr milliseconds kLook(50);
  std::vector<pollfd> waiting{{has_room() ? listener_.get() : -1, POLLIN, 0}};
  for (const Comer& comer : comers_) waiting.push_back({comer.socket.get(), POLLIN, 0});
  ::poll(waiting.data(), waiting.size(), static_cast<int>(kLook.count()));
  for (std::size_t i = 0; i < comers_.size(); ++i) {
    if (waiting[i + 1].revents != 0) read_from(comers_[i]);
  }
  drop_silent();
  if (waiting[0].revents != 0) admit();
}

void Meeting::admit() {
  while (has_room()) {
    Descriptor socket(::accept4(listener_.get(), nullptr, nullptr, SOCK_CLOEXEC | SOCK_NONBLOCK));
    if (!socket.open()) {
      if (errno == EMFILE || errno == ENFILE || errno == ENOBUFS || errno == ENOMEM) {
        throw_socket_error("accept");
      }
      return;  // whoever came has gone
    }
    send_at_once(socket.get());
    comers_.push_back({.socket = std::move(socket)});
  }
}

/// Takes no byte that comes behind the greeting: that is data.
void Meeting::read_from(Comer& comer) {
  const ssize_t got =
      ::recv(comer.socket.get(), comer.bytes.data() + comer.got, comer.bytes.size() - comer.got, 0);
  if (got < 0 && (errno == EAGAIN || errno == EINTR)) return;
  if (got <= 0) {
    comer.socket = Descriptor();
    return;
  }
  comer.got += static_cast<std::size_t>(got);
  if (comer.got == comer.bytes.size()) take(comer);
}

/// Gives the connection its slot, if it is of one of the run's that has none yet.
void Meeting::take(Comer& comer) {
  Descriptor socket = std::exchange(comer.socket, Descriptor());
  Greeting said;
  std::memcpy(&said, comer.bytes.data(), sizeof said);
  if (said.from <= own_ || said.from >= std::ssize(sockets_) || said.to != own_) return;
  const Greeting right = greeting(secret_, said.from, own_);
  const auto text = [](const Greeting& g) { return std::string_view(g.proof.data(), kProofBytes); };
  Descriptor& slot = sockets_[static_cast<std::size_t>(said.from)];
  if (!slot.open() && is_same(text(right), text(said))) slot = std::move(socket);
}

/// Who says nothing for a while goes; where others wait for its slot, after a moment.
void Meeting::drop_silent() {
  constexpr milliseconds kUsual(5000), kMoment(200);
  const auto longest = has_room() ? kUsual : kMoment;
  const Clock::time_point now = Clock::now();
  std::erase_if(comers_, [&](const Comer& comer) {
    return !comer.socket.open() || now - comer.came > longest;
  });
}

std::vector<int> Meeting::missing() const {
  std::vector<int> missing;
  for (int process = own_ + 1; process < std::ssize(sockets_); ++process) {
    if (!sockets_[static_cast<std::size_t>(process)].open()) missing.push_back(process);
  }
  return missing;
}

void Meeting::look_at_end() const {
  if (const auto cause = rendezvous_.root_cause()) throw Aborted(*cause);
}

}  // namespace

std::vector<Descriptor> connect_peers(Rendezvous& rendezvous, const std::string& address,
                                      double timeout_seconds) {
  return Meeting(rendezvous, address, timeout_seconds).run();
}

}  // namespace ringlet::comm
