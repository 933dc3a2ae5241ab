// The control plane: coming together, values, aborts, deaths, and the good end.
#include "comm/processes/rendezvous.h"

#include <fmt/format.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <atomic>
#include <cstdint>
#include <fstream>
#include <map>
#include <memory>
#include <mutex>
#include <stdexcept>
#include <string>
#include <thread>
#include <vector>

#include "base/hash.h"
#include "comm/processes/outbox.h"
#include "tests/comm/processes.h"
#include "tests/support/sanitizers.h"

namespace ringlet::comm {
namespace {

using std::chrono::milliseconds;
using std::chrono::steady_clock;

RendezvousOptions quick_options() {
  RendezvousOptions options;
  options.timeout_seconds = 20;
  return options;
}

using Rendezvouses = std::vector<std::unique_ptr<Rendezvous>>;

/// `processes` connections to one rendezvous, each with options_of(process).
template <class OptionsOf>
Rendezvouses joined_with(int processes, OptionsOf options_of) {
  const std::string run = new_run();
  Rendezvouses all(static_cast<std::size_t>(processes));
  run_ranks(processes, [&](int process) {
    all[static_cast<std::size_t>(process)] = std::make_unique<Rendezvous>(
        ProcessPosition{process, processes, run, "test"}, options_of(process));
  });
  return all;
}

Rendezvouses joined(int processes, const RendezvousOptions& options) {
  return joined_with(processes, [&options](int) { return options; });
}

double seconds_since(steady_clock::time_point begin) {
  return std::chrono::duration<double>(steady_clock::now() - begin).count();
}

/// All say goodbye and get the farewell. False, and an abort to get out, if that takes long.
bool end_together(const Rendezvouses& all) {
  std::atomic<std::size_t> ended{0};
  std::vector<std::thread> threads;
  for (const auto& one : all) {
    threads.emplace_back([&ended, &one] {
      try {
        one->leave();
        ++ended;
      } catch (const Aborted&) {
      }
    });
  }
  const auto begin = steady_clock::now();
  while (ended < all.size() && seconds_since(begin) < 10) {
    std::this_thread::sleep_for(milliseconds(1));
  }
  const bool in_time = ended == all.size();
  if (!in_time) all.front()->abort({0, "the end did not come"});
  for (std::thread& thread : threads) thread.join();
  return in_time;
}

/// A connection of this user's to the run's process 0, which has to wait for others.
MessageSocket connect_as_stranger(const std::string& run) {
  const std::uint64_t hash = hash_bytes(run.data(), run.size());
  const std::string name = fmt::format("ringlet/{}/{:016x}", ::getuid(), hash);
  while (true) {
    if (MessageSocket socket = MessageSocket::connect(name); socket.open()) return socket;
    std::this_thread::sleep_for(milliseconds(1));
  }
}

/// Lets the thread that answers a process's messages wait in options.status().
class Gate {
 public:
  RendezvousOptions options() {
    RendezvousOptions options = quick_options();
    options.status = [this] {
      ++inside_;
      while (!open_) std::this_thread::sleep_for(milliseconds(1));
      return std::string("at last");
    };
    return options;
  }
  void await(int threads) const {
    while (inside_ < threads) std::this_thread::sleep_for(milliseconds(1));
  }
  void open() { open_ = true; }

 private:
  std::atomic<int> inside_{0};
  std::atomic<bool> open_{false};
};

std::optional<RootCause> cause_within_a_second(const Rendezvous& rendezvous) {
  const auto begin = steady_clock::now();
  while (!rendezvous.root_cause() && seconds_since(begin) < 1) {
    std::this_thread::sleep_for(milliseconds(1));
  }
  return rendezvous.root_cause();
}

TEST(Rendezvous, GivesEverybodyTheFirstValueUnderAKey) {
  const auto all = joined(3, quick_options());
  all[2]->set("id", "first");
  for (const auto& one : all) EXPECT_EQ(one->get("id", 5), "first");
  all[0]->set("id", "second");
  all[0]->set("after", std::string(50'000, 'x'));
  for (const auto& one : all) {
    EXPECT_EQ(one->get("after", 5).size(), 50'000U);
    EXPECT_EQ(one->get("id", 5), "first");
  }
}

TEST(Rendezvous, NamesAValueThatDoesNotCome) {
  const auto all = joined(2, quick_options());
  try {
    (void)all[1]->get("nccl id", 0.05);
    FAIL();
  } catch (const TimeoutError& error) {
    EXPECT_STREQ(error.what(),
                 "process 1 waited 0.05 s for another one's \"nccl id\"; look for what keeps it, "
                 "or allow more time with --comm-timeout SECONDS");
  }
}

TEST(Rendezvous, AsksEveryProcess) {
  std::atomic<int> asked{0};
  RendezvousOptions options = quick_options();
  options.status = [&asked] { return "answer " + std::to_string(asked++ * 0); };
  const auto all = joined(3, options);
  EXPECT_EQ(all[1]->ask_status(5), std::vector<std::string>(3, "answer 0"));
  EXPECT_EQ(asked, 3);
}

TEST(Rendezvous, AnswersMayBeLongerThanAMessage) {
  RendezvousOptions options = quick_options();
  const std::string status(3 * Message::kLongest + 7, 's');
  options.status = [length = status.size()] { return std::string(length, 's'); };
  const auto all = joined(3, options);
  EXPECT_EQ(all[2]->ask_status(5), std::vector<std::string>(3, status));
  EXPECT_EQ(all[0]->ask_status(5), std::vector<std::string>(3, status));
  EXPECT_TRUE(end_together(all)) << "no answer ends the run";
}

/// Bytes of this process that are in memory.
std::int64_t resident_bytes() {
  std::int64_t all = 0, resident = 0;
  std::ifstream("/proc/self/statm") >> all >> resident;
  return resident * ::getpagesize();
}

TEST(Rendezvous, KeepsNoAnswer) {
  if (ringlet::testing::kSanitized) GTEST_SKIP() << "sanitizers keep what is freed";
  RendezvousOptions options = quick_options();
  options.status = [] { return std::string(Message::kLongest, 's'); };
  const auto all = joined(4, options);
  const auto ask = [&all](int times) {
    for (int i = 0; i < times; ++i) EXPECT_EQ(all[1]->ask_status(5).size(), 4U);
  };
  ask(20);
  const std::int64_t before = resident_bytes();
  ask(200);  // 48 MB are asked for; as values, all four would have them
  EXPECT_LT(resident_bytes() - before, 24 << 20);
  EXPECT_TRUE(end_together(all));
}

TEST(Rendezvous, LeavesWhenEverybodyHas) {
  const auto all = joined(3, quick_options());
  std::atomic<int> leaving{0};
  run_ranks(3, [&](int process) {
    std::this_thread::sleep_for(milliseconds(30 * process));
    ++leaving;
    all[static_cast<std::size_t>(process)]->leave();
    EXPECT_EQ(leaving, 3);
  });
}

TEST(Rendezvous, AbortReachesEverybodyAndOneProcessTellsTheUser) {
  const auto all = joined(3, quick_options());
  all[1]->abort({4, "out of paper"});
  for (const auto& one : all) {
    const auto cause = cause_within_a_second(*one);
    ASSERT_TRUE(cause);
    EXPECT_EQ(cause->rank, 4);
    EXPECT_EQ(cause->message, "out of paper");
    EXPECT_EQ(one->tells_user(), one == all[1]);
    EXPECT_THROW((void)one->get("id", 5), Aborted);
    EXPECT_THROW(one->leave(), Aborted);
  }
}

TEST(Rendezvous, TakesTheFirstOfSeveralCauses) {
  for (int round = 0; round < 10; ++round) {
    const auto all = joined(4, quick_options());
    run_ranks(4, [&](int process) {
      all[static_cast<std::size_t>(process)]->abort({process, "cause " + std::to_string(process)});
    });
    int tellers = 0;
    for (const auto& one : all) {
      tellers += one->tells_user() ? 1 : 0;
      ASSERT_TRUE(cause_within_a_second(*one));
      EXPECT_EQ(one->root_cause()->message, all[0]->root_cause()->message);
    }
    EXPECT_EQ(tellers, 1);
  }
}

TEST(Rendezvous, NamesAProcessThatDiesAndProcess0TellsOfIt) {
  RendezvousOptions options = quick_options();
  options.replicas = 2;
  for (const std::size_t victim : {1U, 2U}) {
    auto all = joined(3, options);
    const auto begin = steady_clock::now();
    all[victim].reset();
    for (const auto& one : all) {
      if (!one) continue;
      const auto cause = cause_within_a_second(*one);
      ASSERT_TRUE(cause);
      const auto rank = static_cast<int>(2 * victim);
      EXPECT_EQ(cause->rank, rank);
      EXPECT_EQ(cause->message, "process " + std::to_string(victim) + " (pid " +
                                    std::to_string(::getpid()) + ", ranks " + std::to_string(rank) +
                                    " and " + std::to_string(rank + 1) +
                                    ") died; the system's log may say why (dmesg)");
      EXPECT_EQ(one->tells_user(), one == all[0]);
    }
    EXPECT_LT(seconds_since(begin), 1);
  }
}

TEST(Rendezvous, CallsTheRanksOfADeadProcessWhatTheyAreCalled) {
  RendezvousOptions options = quick_options();
  options.replicas = 2;
  options.name_ranks = [](const std::vector<int>& ranks) {
    return fmt::format("the tower, ranks {}", fmt::join(ranks, "+"));
  };
  for (const std::size_t victim : {0U, 1U}) {
    auto all = joined(2, options);
    all[victim].reset();
    const auto cause = cause_within_a_second(*all[1 - victim]);
    ASSERT_TRUE(cause);
    const auto rank = static_cast<int>(2 * victim);
    EXPECT_TRUE(
        contains(cause->message, fmt::format(", the tower, ranks {}+{}) died; ", rank, rank + 1)))
        << cause->message;
  }
}

TEST(Rendezvous, OfProcess0sDeathOneOfTheOthersTells) {
  auto all = joined(4, quick_options());
  all[0].reset();
  int tellers = 0;
  for (std::size_t i = 1; i < all.size(); ++i) {
    const auto cause = cause_within_a_second(*all[i]);
    ASSERT_TRUE(cause);
    EXPECT_TRUE(contains(cause->message, "process 0 (pid ")) << cause->message;
    tellers += all[i]->tells_user() ? 1 : 0;
  }
  EXPECT_EQ(tellers, 1);
}

TEST(Rendezvous, WhatProcess0DecidedIsReadAfterItHasGone) {
  Gate gate;
  auto all = joined_with(
      3, [&gate](int process) { return process == 2 ? gate.options() : quick_options(); });
  (void)all[1]->ask_status(0.01);
  gate.await(1);  // process 2 reads nothing now
  all[1]->abort({1, "out of paper"});
  ASSERT_TRUE(cause_within_a_second(*all[0]));
  all[0].reset();
  all[2]->abort({2, "its memory is gone"});
  gate.open();
  ASSERT_TRUE(cause_within_a_second(*all[2]));
  EXPECT_EQ(all[2]->root_cause()->message, "out of paper");
  EXPECT_FALSE(all[2]->tells_user());
  EXPECT_TRUE(all[1]->tells_user());
}

TEST(MessageSocket, GivesWhatWasSentByWhoWentWithoutReading) {
  auto [gone, here] = MessageSocket::make_pair();
  ASSERT_EQ(gone.send({.kind = Message::Kind::abort, .value = "why"}), MessageSocket::Sent::all);
  ASSERT_EQ(here.send({.kind = Message::Kind::goodbye}), MessageSocket::Sent::all);
  gone = MessageSocket();
  const auto last = here.receive();
  ASSERT_TRUE(last);
  EXPECT_EQ(last->value, "why");
  EXPECT_FALSE(here.receive());
  EXPECT_EQ(here.send({.kind = Message::Kind::goodbye}), MessageSocket::Sent::never);
}

TEST(Rendezvous, LosesNothingThatASocketDoesNotTakeAtOnce) {
  constexpr int kValues = 30;  // far more than a socket holds
  Gate gate;
  const auto all = joined(3, gate.options());
  (void)all[1]->ask_status(0.01);
  gate.await(3);
  for (int i = 0; i < kValues; ++i) all[0]->set(std::to_string(i), std::string(50'000, 'x'));
  gate.open();
  for (const auto& one : all) {
    for (int i = 0; i < kValues; ++i) EXPECT_EQ(one->get(std::to_string(i), 5).size(), 50'000U);
  }
}

TEST(Outbox, LetsAnAbortGoBeforeWhatWaits) {
  constexpr int kValues = 30;
  auto [here, there] = MessageSocket::make_pair();
  Outbox outbox;
  for (int i = 0; i < kValues; ++i) {
    outbox.push({.kind = Message::Kind::set, .value = std::string(50'000, 'x')});
  }
  outbox.send_to(here);
  EXPECT_FALSE(outbox.empty()) << "the socket took all";
  outbox.push({.kind = Message::Kind::abort});
  int before = 0;
  for (; before < kValues; ++before) {
    outbox.send_to(here);
    if (there.receive()->kind == Message::Kind::abort) break;
  }
  EXPECT_LT(before, kValues / 2);
  EXPECT_TRUE(outbox.empty());
  EXPECT_THROW(outbox.push({.value = std::string(Message::kLongest + 1, 'x')}), CommError);
}

TEST(Rendezvous, AnAbortReachesThoseThatHaveMuchToRead) {
  Gate gate;
  const auto all = joined(3, gate.options());
  (void)all[1]->ask_status(0.01);
  gate.await(3);
  for (int i = 0; i < 30; ++i) all[0]->set(std::to_string(i), std::string(50'000, 'x'));
  all[2]->abort({2, "out of paper"});
  gate.open();
  for (const auto& one : all) {
    ASSERT_TRUE(cause_within_a_second(*one));
    EXPECT_EQ(one->root_cause()->message, "out of paper");
    EXPECT_THROW((void)one->get("29", 5), Aborted);
  }
}

TEST(Rendezvous, CutsACauseThatIsTooLong) {
  const auto all = joined(12, quick_options());  // the number of a process is a part of the message
  all[11]->abort({11, std::string(Message::kLongest, 'x')});
  for (const auto& one : all) {
    ASSERT_TRUE(cause_within_a_second(*one));
    EXPECT_EQ(one->root_cause()->message, std::string(Message::kLongest - 6, 'x').append(" ..."));
  }
}

TEST(Rendezvous, AFailureWhileAnsweringIsAnAbort) {
  RendezvousOptions options = quick_options();
  options.replicas = 2;
  const auto all = joined_with(2, [&options](int process) {
    RendezvousOptions own = options;
    if (process == 1) own.status = []() -> std::string { throw std::runtime_error("no words"); };
    return own;
  });
  (void)all[0]->ask_status(5);
  for (const auto& one : all) {
    const auto cause = cause_within_a_second(*one);
    ASSERT_TRUE(cause);
    EXPECT_EQ(cause->rank, 2);
    EXPECT_EQ(cause->message, "no words");
    EXPECT_EQ(one->tells_user(), one == all[1]);
  }
}

TEST(Rendezvous, EndsBesideAStrangerThatStaysOrGoes) {
  for (const bool stays : {true, false}) {
    const std::string run = new_run();
    Rendezvouses all(2);
    const auto join = [&](int process) {
      all[static_cast<std::size_t>(process)] =
          std::make_unique<Rendezvous>(ProcessPosition{process, 2, run, "test"}, quick_options());
    };
    std::thread first(join, 0);
    MessageSocket stranger = connect_as_stranger(run);
    join(1);
    first.join();
    if (!stays) stranger = MessageSocket();
    EXPECT_TRUE(end_together(all)) << stays;
  }
}

TEST(Rendezvous, HearsNobodyThatDoesNotIntroduceItself) {
  const std::string run = new_run();
  Rendezvouses all(2);
  const auto join = [&](int process) {
    all[static_cast<std::size_t>(process)] =
        std::make_unique<Rendezvous>(ProcessPosition{process, 2, run, "test"}, quick_options());
  };
  std::thread first(join, 0);
  MessageSocket silent = connect_as_stranger(run), rude = connect_as_stranger(run);
  (void)rude.send({.kind = Message::Kind::abort, .number = 1, .value = "stop"});
  EXPECT_FALSE(rude.receive()) << "dropped at once";
  EXPECT_FALSE(silent.receive()) << "dropped after some seconds";
  join(1);
  first.join();
  EXPECT_TRUE(end_together(all));
}

TEST(Rendezvous, NamesThoseThatKeepTheOthersWaitingAtTheEnd) {
  std::mutex mutex;
  std::map<int, std::string> reminders;
  const auto all = joined_with(4, [&](int process) {
    RendezvousOptions options = quick_options();
    options.remind_seconds = 0.3;
    options.remind = [&, process](const std::string& text) {
      const std::lock_guard lock(mutex);
      reminders.emplace(process, text);
    };
    return options;
  });
  std::thread early([&] { all[1]->leave(); }), also_early([&] { all[3]->leave(); });
  const auto first = [&] {
    const std::lock_guard lock(mutex);
    return reminders.contains(1) ? reminders.at(1) : std::string();
  };
  const auto begin = steady_clock::now();
  while (first().empty() && seconds_since(begin) < 10) {
    std::this_thread::sleep_for(milliseconds(1));
  }
  std::thread last([&] { all[2]->leave(); });
  all[0]->leave();
  for (std::thread* thread : {&early, &also_early, &last}) thread->join();
  EXPECT_EQ(reminders.count(2), 0U);
  EXPECT_TRUE(contains(first(), "s for processes 0 and 2 to come to the end of the run"))
      << first();
}

TEST(Rendezvous, SaysWhoNeverCame) {
  RendezvousOptions options;
  options.timeout_seconds = 2;  // in which one of the two comes, on a busy machine too
  const std::string run = new_run();
  const auto messages = messages_of_ranks(2, [&](int i) {
    Rendezvous rendezvous({i == 0 ? 0 : 2, 4, run, "test"}, options);
  });
  EXPECT_EQ(messages[0],
            "processes 1 and 3 never came (waited 2 s); start all 4 processes of the run");
  EXPECT_EQ(messages[1], "stopped, because rank 0 failed: " + messages[0]);

  options.timeout_seconds = 0.2;
  try {
    Rendezvous rendezvous({1, 2, new_run(), "test"}, options);
    FAIL();
  } catch (const TimeoutError& error) {
    EXPECT_TRUE(contains(error.what(), "process 0 never came")) << error.what();
  }
}

TEST(Rendezvous, EndsForAllWhereOneCannotBegin) {
  for (const int failed : {0, 1, 2}) {
    const std::string run = new_run();
    const auto begin = steady_clock::now();
    const auto messages = messages_of_ranks(3, [&](int process) {
      const ProcessPosition position{process, 3, run, "test"};
      if (process == failed) return tell_failure(position, "there is no folder 'x'");
      const Rendezvous rendezvous(position, quick_options());
    });
    const std::string why =
        fmt::format("process {} (pid {}) cannot begin: there is no folder 'x'", failed, ::getpid());
    for (int process = 0; process < 3; ++process) {
      const std::string& message = messages[static_cast<std::size_t>(process)];
      EXPECT_EQ(message, process == failed ? ""
                         : process == 0    ? why
                                           : "stopped, because rank 0 failed: " + why);
    }
    EXPECT_LT(seconds_since(begin), 10) << failed;
  }
}

TEST(Rendezvous, KeepsNobodyForLongWhereAllFailAlikeOrNobodyElseIsThere) {
  const std::string run = new_run(), why(100'000, 'x');
  const auto begin = steady_clock::now();
  run_ranks(5, [&](int i) {
    const ProcessPosition together{i, 3, run, "test"}, alone{i - 3, 2, new_run(), "test"};
    tell_failure(i < 3 ? together : alone, why);
  });
  EXPECT_LT(seconds_since(begin), 10);
}

TEST(Rendezvous, RefusesProcessesThatDoNotAgree) {
  const std::string run = new_run();
  const auto messages = messages_of_ranks(2, [&](int process) {
    RendezvousOptions options = quick_options();
    options.agreed = {{"version", "1"}, {"--replicas", std::to_string(process + 1)}};
    Rendezvous rendezvous({process, 2, run, "test"}, options);
  });
  EXPECT_EQ(messages[0],
            "the processes do not agree on --replicas: process 0 has 1, process 1 has 2; "
            "start all with the same flags");
  EXPECT_EQ(messages[1], "stopped, because rank 0 failed: " + messages[0]);
}

TEST(Rendezvous, RefusesAProcessThatComesTwice) {
  const std::string run = new_run();
  const std::string twice = "two processes say that they are process 1";
  const auto messages = messages_of_ranks(3, [&](int i) {
    Rendezvous rendezvous({std::min(i, 1), 3, run, "test"}, quick_options());
  });
  for (const std::string& message : messages) EXPECT_TRUE(contains(message, twice)) << message;

  const std::string other = new_run();
  const auto listeners = messages_of_ranks(2, [&](int) {
    RendezvousOptions options;
    options.timeout_seconds = 2;
    Rendezvous rendezvous({0, 2, other, "test"}, options);
  });
  EXPECT_TRUE(contains(listeners[0] + listeners[1], "another process 0 is waiting"))
      << listeners[0] << listeners[1];
}

TEST(Rendezvous, FreesItsNameOnceEverybodyHasCome) {
  const std::string run = new_run();
  const auto join_two = [&] {
    std::vector<std::unique_ptr<Rendezvous>> two(2);
    run_ranks(2, [&](int process) {
      two[static_cast<std::size_t>(process)] =
          std::make_unique<Rendezvous>(ProcessPosition{process, 2, run, "test"}, quick_options());
    });
    return two;
  };
  const auto first = join_two();
  const auto second = join_two();
  second[0]->set("whose", "second");
  EXPECT_EQ(second[1]->get("whose", 5), "second");
  EXPECT_THROW((void)first[1]->get("whose", 0.05), TimeoutError);
}

}  // namespace
}  // namespace ringlet::comm
