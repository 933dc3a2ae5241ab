// The control plane: coming together, values, aborts, deaths, and the good end.
#include "comm/processes/rendezvous.h"

#include <gtest/gtest.h>

#include <atomic>
#include <memory>
#include <string>
#include <vector>

#include "tests/comm/processes.h"

namespace ringlet::comm {
namespace {

using std::chrono::milliseconds;
using std::chrono::steady_clock;

RendezvousOptions quick_options() {
  RendezvousOptions options;
  options.timeout_seconds = 20;
  return options;
}

/// `processes` connections to one rendezvous.
std::vector<std::unique_ptr<Rendezvous>> joined(int processes, const RendezvousOptions& options) {
  const std::string run = new_run();
  std::vector<std::unique_ptr<Rendezvous>> all(static_cast<std::size_t>(processes));
  run_ranks(processes, [&](int process) {
    all[static_cast<std::size_t>(process)] =
        std::make_unique<Rendezvous>(ProcessPlace{process, processes, run, "test"}, options);
  });
  return all;
}

double seconds_since(steady_clock::time_point begin) {
  return std::chrono::duration<double>(steady_clock::now() - begin).count();
}

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

TEST(Rendezvous, SaysWhoNeverCame) {
  RendezvousOptions options;
  options.timeout_seconds = 0.2;
  const std::string run = new_run();
  const auto messages = messages_of_ranks(2, [&](int i) {
    Rendezvous rendezvous({i == 0 ? 0 : 2, 4, run, "test"}, options);
  });
  EXPECT_EQ(messages[0],
            "processes 1 and 3 never came (waited 0.2 s); start all 4 processes of the run");
  EXPECT_EQ(messages[1], "stopped, because rank 0 failed: " + messages[0]);

  try {
    Rendezvous rendezvous({1, 2, new_run(), "test"}, options);
    FAIL();
  } catch (const TimeoutError& error) {
    EXPECT_TRUE(contains(error.what(), "process 0 never came")) << error.what();
  }
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
    options.timeout_seconds = 0.2;
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
          std::make_unique<Rendezvous>(ProcessPlace{process, 2, run, "test"}, quick_options());
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
