// The control plane over TCP: strangers, tokens, signs of life, and which machine is which.
#include <fmt/format.h>
#include <gtest/gtest.h>
#include <sys/socket.h>
#include <unistd.h>

#include <chrono>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <thread>
#include <vector>

#include "base/trace.h"
#include "comm/processes/admission.h"
#include "comm/processes/frames.h"
#include "comm/processes/hello.h"
#include "comm/processes/rendezvous.h"
#include "tests/comm/processes.h"

namespace ringlet::comm {
namespace {

using std::chrono::milliseconds;
using std::chrono::steady_clock;
using Kind = Message::Kind;

/// A port of the loopback that nobody has just now.
TcpAddress free_address() {
  const MessageSocket listener = MessageSocket::listen(TcpAddress{"127.0.0.1", 0});
  return listener.own_address();
}

/// What process 1 of the test says first, and then: its proof under `token`. Returns what came.
std::optional<Message> introduce(MessageSocket& comer, const Hello& hello,
                                 const std::string& token = "secret") {
  const Message said = to_message(hello);
  (void)comer.send(said);
  const auto challenge = comer.receive();
  if (!challenge || challenge->kind != Kind::challenge) return challenge;
  (void)comer.send({.kind = Kind::proof, .value = comers_proof(token, said, challenge->key)});
  return comer.receive();
}

RendezvousOptions options_of(int process) {
  RendezvousOptions options;
  options.timeout_seconds = 20;
  options.machine = process < 2 ? "first" : "second";
  options.host = process < 2 ? "a" : "b";
  return options;
}

/// Processes that meet over TCP; the first two on one machine.
class Hub {
 public:
  explicit Hub(int processes) : all_(static_cast<std::size_t>(processes)) {}

  ProcessPosition position(int process) const {
    return {.process = process,
            .processes = static_cast<int>(all_.size()),
            .run = run_,
            .launcher = "test",
            .hub = address_,
            .token = "secret"};
  }
  void join(int process) { join(process, options_of(process)); }
  void join(int process, const RendezvousOptions& options) {
    all_[static_cast<std::size_t>(process)] =
        std::make_unique<Rendezvous>(position(process), options);
  }
  void join_all() {
    run_ranks(static_cast<int>(all_.size()), [this](int process) { join(process); });
  }
  std::unique_ptr<Rendezvous>& operator[](std::size_t process) { return all_[process]; }
  const TcpAddress& address() const { return address_; }
  /// A connection of anybody's, once process 0 listens.
  MessageSocket connect() const {
    std::string failure;
    while (true) {
      auto socket = MessageSocket::connect(address_, milliseconds(1000), failure);
      if (socket.open()) return socket;
      std::this_thread::sleep_for(milliseconds(1));
    }
  }
  Hello hello(int process) const {
    return {.process = process,
            .replicas = 1,
            .pid = 4711,
            .machine = "second",
            .host = "b",
            .address = "127.0.0.1",
            .run = run_,
            .nonce = "of the test"};
  }

 private:
  TcpAddress address_ = free_address();
  std::string run_ = new_run();
  std::vector<std::unique_ptr<Rendezvous>> all_;
};

std::optional<RootCause> cause_within(const Rendezvous& rendezvous, double seconds) {
  const auto begin = steady_clock::now();
  while (!rendezvous.root_cause() &&
         std::chrono::duration<double>(steady_clock::now() - begin).count() < seconds) {
    std::this_thread::sleep_for(milliseconds(1));
  }
  return rendezvous.root_cause();
}

/// All come to the end.
void expect_end(Hub& hub, int processes) {
  run_ranks(processes, [&hub](int process) { hub[static_cast<std::size_t>(process)]->leave(); });
}

TEST(HubOverTcp, GivesEverybodyTheTableAndValues) {
  Hub hub(3);
  hub.join_all();
  for (std::size_t process = 0; process < 3; ++process) {
    const std::vector<Site>& sites = hub[process]->sites();
    ASSERT_EQ(sites.size(), 3U);
    EXPECT_EQ(sites[1].machine, 0);
    EXPECT_EQ(sites[2].machine, 1);
    EXPECT_EQ(sites[2].host, "b");
    EXPECT_EQ(sites[0].address, "127.0.0.1");
    EXPECT_EQ(sites[2].pid, ::getpid());
  }
  hub[2]->set("id", std::string(50'000, 'x'));
  for (std::size_t process = 0; process < 3; ++process) {
    EXPECT_EQ(hub[process]->get("id", 5).size(), 50'000U);
  }
  EXPECT_EQ(hub[1]->ask_status(5).size(), 3U);
  expect_end(hub, 3);
}

TEST(HubOverTcp, TellsItsTime) {
  Hub hub(3);
  hub.join_all();
  for (std::size_t process = 0; process < 3; ++process) {
    const std::int64_t before = now_ns();
    const ClockReading reading = hub[process]->read_clock(5);
    EXPECT_GE(reading.at_ns, before);
    EXPECT_LE(reading.at_ns, now_ns());
    EXPECT_LE(std::abs(reading.ahead_ns), reading.within_ns) << "they have one clock here";
    EXPECT_LT(reading.within_ns, 50'000'000);
    EXPECT_EQ(reading.within_ns > 0, process == 2) << "only that one is elsewhere";
  }
  EXPECT_EQ(hub[2]->ask_status(5).size(), 3U);
  expect_end(hub, 3);
}

/// An address of the loopback under another name than that.
TcpAddress disguised(TcpAddress address) {
  address.host = "0x7f.0.1.1";
  return address;
}

TEST(HubOverTcp, SaysThatNobodyElseReachesTheLoopback) {
  const TcpAddress address = disguised(free_address());
  std::vector<std::string> warnings;
  RendezvousOptions options = options_of(0);
  options.remind = [&warnings](const std::string& warning) { warnings.push_back(warning); };
  ProcessPosition position{.process = 0,
                           .processes = 1,
                           .run = new_run(),
                           .launcher = "test",
                           .hub = address,
                           .spread = true};
  const std::string words = "0x7f.0.1.1 is 127.0.1.1 on a itself, where no other machine";
  try {
    const Rendezvous refused(position, options);
    FAIL();
  } catch (const CommError& error) {
    EXPECT_TRUE(contains(error.what(), words)) << error.what();
  }
  EXPECT_TRUE(warnings.empty());
  position.spread = false;
  Rendezvous alone(position, options);
  ASSERT_EQ(warnings.size(), 1U);
  EXPECT_TRUE(contains(warnings[0], words)) << warnings[0];
  alone.leave();
}

TEST(HubOverTcp, MeetsUnderAnyNameOfTheLoopback) {
  for (const char* name_of_process_0 : {"localhost", "127.0.0.1"}) {
    const int port = free_address().port;
    const std::string run = new_run();
    run_ranks(3, [&](int process) {
      const std::vector<std::string> names{name_of_process_0, "localhost", "127.0.0.1"};
      const ProcessPosition position{
          .process = process,
          .processes = 3,
          .run = run,
          .launcher = "test",
          .hub = TcpAddress{names[static_cast<std::size_t>(process)], port}};
      Rendezvous(position, options_of(process)).leave();
    });
  }
}

TEST(HubOverTcp, MeetsOverIpv6) {
  TcpAddress address{"::1", 0};
  try {
    address.port = MessageSocket::listen(address).own_address().port;
  } catch (const CommError&) {
    GTEST_SKIP() << "there is no IPv6 here";
  }
  std::vector<std::unique_ptr<Rendezvous>> all(2);
  const std::string run = new_run();
  run_ranks(2, [&](int process) {
    const ProcessPosition position{
        .process = process, .processes = 2, .run = run, .launcher = "test", .hub = address};
    auto& mine = all[static_cast<std::size_t>(process)];
    mine = std::make_unique<Rendezvous>(position, options_of(2 * process));
    EXPECT_EQ(mine->sites()[1].address, "::1");
    mine->leave();
  });
  run_ranks(2, [&](int process) {  // process 0 calls it otherwise
    const TcpAddress named{process == 0 ? "::1" : "127.0.0.1", address.port};
    const ProcessPosition position{
        .process = process, .processes = 2, .run = run, .launcher = "test", .hub = named};
    Rendezvous(position, options_of(process)).leave();
  });
}

TEST(HubOverTcp, NamesADeathWithItsHost) {
  for (const std::size_t victim : {2U, 0U}) {
    Hub hub(3);
    hub.join_all();
    hub[victim].reset();
    for (std::size_t process = 0; process < 3; ++process) {
      if (process == victim) continue;
      const auto cause = cause_within(*hub[process], 1);
      ASSERT_TRUE(cause);
      EXPECT_EQ(cause->message,
                fmt::format("process {} on {} (pid {}, rank {}) died; the system's log there may "
                            "say why (dmesg)",
                            victim, victim == 0 ? "a" : "b", ::getpid(), victim));
    }
  }
}

TEST(HubOverTcp, TakesAProcessForDeadThatIsSilent) {
  Hub hub(2);
  RendezvousOptions quick = options_of(0);
  quick.beat = milliseconds(100);
  std::thread first([&] { hub.join(0, quick); });
  MessageSocket silent = hub.connect();
  EXPECT_EQ(introduce(silent, hub.hello(1))->kind, Kind::welcome);
  first.join();
  const auto cause = cause_within(*hub[0], 5);
  ASSERT_TRUE(cause);
  EXPECT_EQ(cause->rank, 1);
  EXPECT_EQ(cause->message,
            "process 1 on b (pid 4711, rank 1) has not been heard of for 0.4 s; it is stopped, or "
            "its machine or the link to it is down");
  EXPECT_TRUE(hub[0]->tells_user());
}

/// Plays process 0 for process 1 up to the welcome, which knows `token`. Returns the connection,
/// and all that came over it in `heard`.
MessageSocket play_hub(const MessageSocket& listener, const std::string& token,
                       std::string& heard) {
  MessageSocket guest;
  while (!guest.open()) guest = listener.accept();
  const auto hello = guest.receive();
  (void)guest.send({.kind = Kind::challenge, .key = "of the test"});
  const auto proof = guest.receive();
  if (!hello || !proof) return {};
  heard = bytes_of(*hello) + bytes_of(*proof);
  const std::vector<Site> sites{{0, 12, "a", "127.0.0.1"}, {1, 13, "b", "127.0.0.1"}};
  (void)guest.send({.kind = Kind::welcome,
                    .key = hubs_proof(token, *hello, "of the test"),
                    .value = table_of(sites)});
  return guest;
}

TEST(HubOverTcp, TakesAHubForDeadThatIsSilent) {
  Hub hub(2);
  RendezvousOptions quick = options_of(1);
  quick.beat = milliseconds(100);
  const MessageSocket listener = MessageSocket::listen(hub.address());
  std::thread second([&] { hub.join(1, quick); });
  std::string heard;
  MessageSocket guest = play_hub(listener, "secret", heard);
  second.join();
  const auto cause = cause_within(*hub[1], 5);
  ASSERT_TRUE(cause);
  EXPECT_TRUE(contains(cause->message, "process 0 on a (pid 12, rank 0) has not been heard of for"))
      << cause->message;
  const auto beat = guest.receive();
  ASSERT_TRUE(beat);
  EXPECT_EQ(beat->kind, Kind::beat);
}

TEST(HubOverTcp, NeverSaysTheTokenAndBelievesNoHubThatDoesNotKnowIt) {
  Hub hub(2);
  const MessageSocket listener = MessageSocket::listen(hub.address());
  std::string message, heard;
  std::thread second([&] { message = messages_of_ranks(1, [&](int) { hub.join(1); })[0]; });
  const MessageSocket guest = play_hub(listener, "secrex", heard);
  second.join();
  EXPECT_EQ(message, "what answers at " + text_of(hub.address()) +
                         " does not know RINGLET_TOKEN; look what listens there, or give the run "
                         "another port");
  EXPECT_TRUE(contains(heard, "replicas"));
  EXPECT_FALSE(contains(heard, "secret"));
}

TEST(HubOverTcp, TriesAgainWhereSomethingElseAnswers) {
  Hub hub(2);
  std::thread second;
  {
    const MessageSocket listener = MessageSocket::listen(hub.address());
    second = std::thread([&] { hub.join(1); });
    MessageSocket guest;
    while (!guest.open()) guest = listener.accept();
    (void)guest.receive();
    const std::string other = "HTTP/1.1 400 Bad Request\r\n\r\n";
    ASSERT_GT(::send(guest.descriptor(), other.data(), other.size(), MSG_NOSIGNAL), 0);
  }
  hub.join(0);
  second.join();
  expect_end(hub, 2);
}

TEST(HubOverTcp, LivesOnSignsOfLifeAlone) {
  Hub hub(3);
  run_ranks(3, [&hub](int process) {
    RendezvousOptions quick = options_of(process);
    quick.beat = milliseconds(500);  // two seconds of silence: a busy machine takes some
    hub.join(process, quick);
  });
  std::this_thread::sleep_for(milliseconds(2700));
  for (std::size_t process = 0; process < 3; ++process) EXPECT_FALSE(hub[process]->root_cause());
  expect_end(hub, 3);
}

TEST(HubOverTcp, LetsNobodyInWithoutTheTokenOrOfAnotherRunOrVersion) {
  Hub hub(2);
  std::mutex mutex;
  std::vector<std::string> warnings;
  RendezvousOptions warned = options_of(0);
  warned.remind = [&](const std::string& warning) {
    const std::lock_guard lock(mutex);
    warnings.push_back(warning);
  };
  std::thread first([&] { hub.join(0, warned); });
  Hello of_other_run = hub.hello(1), of_other_version = hub.hello(1);
  of_other_run.run = "another\nline";
  of_other_version.protocol = "";  // as the first version, which said none
  struct Case {
    Hello hello;
    std::string token, why;
  };
  const std::vector<Case> cases{
      {hub.hello(1), "secrex", "has another RINGLET_TOKEN than"},
      {hub.hello(1), "", "has another RINGLET_TOKEN than"},
      {of_other_run, "secret", "is of another run (another?line) than"},
      {of_other_version, "secret", "is of another version of Ringlet than"}};
  for (const auto& [hello, token, why] : cases) {
    MessageSocket comer = hub.connect();
    const auto answer = introduce(comer, hello, token);
    ASSERT_TRUE(answer);
    EXPECT_EQ(answer->kind, Kind::abort);
    EXPECT_EQ(answer->key, "1");
    EXPECT_TRUE(contains(answer->value, "process 1 on b " + why + " process 0 at tcp:"))
        << answer->value;
    EXPECT_FALSE(comer.receive());
    const std::lock_guard lock(mutex);
    ASSERT_FALSE(warnings.empty());
    EXPECT_EQ(warnings.back(), answer->value) << "the run's user hears of it at once";
  }
  hub.join(1);
  first.join();
  EXPECT_FALSE(hub[0]->root_cause());
  EXPECT_EQ(warnings.size(), 3U) << "each once";
  expect_end(hub, 2);
}

TEST(HubOverTcp, LetsNobodyInByWhatWasHeardBefore) {
  Hub hub(2);
  std::thread first([&] { hub.join(0); });
  const Message said = to_message(hub.hello(1));
  std::string heard;
  for (const bool again : {false, true}) {
    MessageSocket comer = hub.connect();
    (void)comer.send(said);
    const auto challenge = comer.receive();
    ASSERT_TRUE(challenge);
    if (!again) heard = comers_proof("secret", said, challenge->key);
    if (!again) continue;
    (void)comer.send({.kind = Kind::proof, .value = heard});
    const auto answer = comer.receive();
    ASSERT_TRUE(answer);
    EXPECT_EQ(answer->kind, Kind::abort);
  }
  hub.join(1);
  first.join();
  expect_end(hub, 2);
}

TEST(HubOverTcp, WaitsNotForLongWhereOnlyWhoWasRefusedIsMissing) {
  Hub hub(2);
  const auto begin = steady_clock::now();
  const auto messages = messages_of_ranks(2, [&](int process) {
    if (process == 0) {
      RendezvousOptions options = options_of(0);
      options.timeout_seconds = 600;
      options.second_chance = milliseconds(300);
      return hub.join(0, options);
    }
    ProcessPosition position = hub.position(1);
    position.token = "secrex";
    Rendezvous refused(position, options_of(1));
  });
  const std::string why = "process 1 on a has another RINGLET_TOKEN than process 0 at tcp:";
  for (const std::string& message : messages) EXPECT_TRUE(contains(message, why)) << message;
  EXPECT_LT(steady_clock::now() - begin, std::chrono::seconds(60));
}

TEST(HubOverTcp, EndsForAllWhereOneCannotBegin) {
  for (const int failed : {0, 1, 2}) {
    Hub hub(3);
    const auto begin = steady_clock::now();
    const auto messages = messages_of_ranks(3, [&](int process) {
      if (process == failed) return tell_failure(hub.position(process), std::string(50'000, 'x'));
      hub.join(process);
    });
    const std::string who =
        fmt::format("process {} on {} (pid {}) cannot begin: xxx", failed, host_name(), ::getpid());
    for (int process = 0; process < 3; ++process) {
      const std::string& message = messages[static_cast<std::size_t>(process)];
      if (process == failed) continue;
      EXPECT_TRUE(contains(message, who)) << message.substr(0, 200);
      EXPECT_TRUE(message.ends_with("xxx ...")) << "the text is cut";
    }
    EXPECT_LT(steady_clock::now() - begin, std::chrono::seconds(10)) << failed;
  }
}

TEST(HubOverTcp, TakesNoFailureFromAStranger) {
  Hub hub(2);
  std::thread first([&] { hub.join(0); });
  MessageSocket stranger = hub.connect();
  Hello hello = hub.hello(1);
  hello.failure = "no, really";
  const auto answer = introduce(stranger, hello, "not the token");
  EXPECT_TRUE(answer && answer->kind == Kind::abort);
  hub.join(1);
  first.join();
  expect_end(hub, 2);
}

TEST(HubOverTcp, IsNotChangedByStrangers) {
  Hub hub(2);
  std::thread first([&] { hub.join(0); });
  MessageSocket half_open = hub.connect(), rude = hub.connect(), endless = hub.connect();
  std::vector<MessageSocket> flood;
  (void)rude.send({.kind = Kind::abort, .number = 1, .value = "stop"});
  EXPECT_FALSE(rude.receive()) << "dropped at once, and told nothing";
  const std::string long_hello(Frames::kLongestOfStranger, 'x');
  (void)endless.send({.kind = Kind::hello, .value = long_hello});
  EXPECT_FALSE(endless.receive()) << "dropped for its length";
  const std::string half = frame_of(to_message(hub.hello(1))).substr(0, 20);
  ASSERT_EQ(::send(half_open.descriptor(), half.data(), half.size(), MSG_NOSIGNAL), 20);
  for (int i = 0; i < 200; ++i) flood.push_back(hub.connect());
  hub.join(1);
  first.join();
  EXPECT_FALSE(hub[0]->root_cause());
  EXPECT_FALSE(half_open.receive()) << "dropped once all have come";
  std::string failure;
  EXPECT_FALSE(MessageSocket::connect(hub.address(), milliseconds(500), failure).open())
      << "nobody listens any more";
  expect_end(hub, 2);
}

TEST(HubOverTcp, SaysWhereItCannotListen) {
  const MessageSocket taken = MessageSocket::listen(TcpAddress{"127.0.0.1", 0});
  for (const TcpAddress& address : {taken.own_address(), TcpAddress{"192.0.2.1", 29500}}) {
    try {
      (void)MessageSocket::listen(address);
      FAIL() << text_of(address);
    } catch (const CommError& error) {
      EXPECT_TRUE(contains(error.what(), "process 0 cannot listen on " + text_of(address)))
          << error.what();
    }
  }
}

TEST(HubOverTcp, SaysWhyProcess0WasNotReached) {
  Hub hub(2);
  RendezvousOptions options = options_of(1);
  options.timeout_seconds = 0.2;
  try {
    hub.join(1, options);
    FAIL();
  } catch (const TimeoutError& error) {
    EXPECT_TRUE(contains(error.what(), text_of(hub.address()) + ": Connection refused; "))
        << error.what();
  }
  std::string failure;  // of a name, with what this machine takes it for
  (void)MessageSocket::connect(disguised(hub.address()), milliseconds(1000), failure);
  EXPECT_EQ(failure, "Connection refused by 127.0.1.1");
}

}  // namespace
}  // namespace ringlet::comm
