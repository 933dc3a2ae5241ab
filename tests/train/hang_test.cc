// A replica that does not end after another one failed: the user reads what failed all the same.
#include <gtest/gtest.h>

#include <atomic>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <string>
#include <thread>
#include <vector>

#include "base/stopwatch.h"
#include "tests/support/files.h"
#include "train/trainer.h"

namespace ringlet::train {
namespace {

using std::chrono::milliseconds;
using std::chrono::seconds;

constexpr const char* kCause = "replica 0 (cpu:0): a fuse blew";

Execution three_replicas(double hang_grace) {
  Execution execution;
  execution.devices.resize(3);
  execution.hang_grace = hang_grace;
  return execution;
}

/// Rank 0 fails, rank 1 does `what`, rank 2 waits for both.
ReplicaBody failing_while(const std::function<void()>& what) {
  return [what](Device& device, comm::Communicator& communicator) {
    if (communicator.rank() == 0) throw std::runtime_error("a fuse blew");
    if (communicator.rank() == 1) return what();
    communicator.barrier(device.communication(), "the end");
  };
}

TEST(HangDeathTest, AReplicaThatNeverEndsIsNamedBehindTheCause) {
  GTEST_FLAG_SET(death_test_style, "threadsafe");
  const auto fail_with_a_hanging_replica = [] {
    Execution execution = three_replicas(0.2);
    execution.on_hang = [](const std::string& message) {
      std::fputs(message.c_str(), stderr);
      std::_Exit(1);
    };
    const auto hang = [] { std::this_thread::sleep_for(seconds(30)); };  // as good as for ever
    run_replicas(execution, failing_while(hang), nullptr);
  };
  EXPECT_EXIT(fail_with_a_hanging_replica(), ::testing::ExitedWithCode(1),
              "^replica 0 \\(cpu:0\\): a fuse blew; 0.2 s later still not ended: "
              "replica 1 \\(cpu:0\\)$");
}

// As where a thread that watches a GPU gives up, and the replica waits for the GPU for ever.
TEST(HangDeathTest, AReplicaThatHangsWithoutAFailureEndsAfterAnAbort) {
  GTEST_FLAG_SET(death_test_style, "threadsafe");
  const auto hang_behind_an_abort = [] {
    Execution execution = three_replicas(0.2);
    execution.on_hang = [](const std::string& message) {
      std::fputs(message.c_str(), stderr);
      std::_Exit(1);
    };
    const auto body = [](Device&, comm::Communicator& communicator) {
      if (communicator.rank() != 1) return;
      std::thread([&communicator] { communicator.abort("the cable was cut"); }).join();
      std::this_thread::sleep_for(seconds(30));
    };
    run_replicas(execution, body, nullptr);
  };
  EXPECT_EXIT(hang_behind_an_abort(), ::testing::ExitedWithCode(1),
              "^the cable was cut; 0.2 s later still not ended: replica 1 \\(cpu:0\\)$");
}

TEST(Hang, AFailureWhereAllEndDoesNotWait) {
  constexpr double kGrace = 60;
  Execution execution = three_replicas(kGrace);
  execution.on_hang = [](const std::string& message) { ADD_FAILURE() << message; };
  const auto end_late = [] { std::this_thread::sleep_for(milliseconds(100)); };
  const Stopwatch watch;
  EXPECT_EQ(testing::message_of<Error>(
                [&] { run_replicas(execution, failing_while(end_late), nullptr); }),
            kCause);
  EXPECT_LT(watch.seconds(), kGrace / 6);
}

TEST(Hang, NothingIsToldOfARunThatIsOnlyLong) {
  Execution execution = three_replicas(0.01);
  execution.on_hang = [](const std::string& message) { ADD_FAILURE() << message; };
  run_replicas(
      execution,
      [](Device& device, comm::Communicator& communicator) {
        std::this_thread::sleep_for(milliseconds(100 * communicator.rank()));
        communicator.barrier(device.communication(), "the end");
      },
      nullptr);
}

TEST(Hang, ReplicasAreWaitedForWhereNobodyEndsTheProcess) {
  for (const bool told : {false, true}) {
    Execution execution = three_replicas(0.01);
    std::vector<std::string> messages;
    if (told) execution.on_hang = [&](const std::string& message) { messages.push_back(message); };
    std::atomic<bool> ended{false};
    const auto end_late = [&ended] {
      std::this_thread::sleep_for(milliseconds(300));
      ended = true;
    };
    EXPECT_EQ(testing::message_of<Error>(
                  [&] { run_replicas(execution, failing_while(end_late), nullptr); }),
              kCause);
    EXPECT_TRUE(ended.load());
    EXPECT_EQ(messages.size(), told ? 1U : 0U);
  }
}

}  // namespace
}  // namespace ringlet::train
