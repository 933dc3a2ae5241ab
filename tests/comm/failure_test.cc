// A rank fails, wherever it is: all others stop at once and name the root cause.
#include <gtest/gtest.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <functional>
#include <limits>
#include <string>
#include <thread>
#include <vector>

#include "comm/communicator.h"
#include "tests/comm/failing_transport.h"
#include "tests/comm/ranks.h"

namespace ringlet::comm {
namespace {

using std::chrono::steady_clock;

constexpr auto kLongestEnd = std::chrono::seconds(5);  // of everybody, after the first failure
constexpr double kTimeout = 10;  // seconds: whoever is not told of the failure is seen to be late

using Collective = std::function<void(Communicator&, Stream&, View data)>;

struct FailureCase {
  std::string name;
  std::string strategy = "ring";
  Collective collective;
  std::size_t count = 1000;
};

const std::vector<FailureCase>& failure_cases() {
  const Collective reduce = [](Communicator& communicator, Stream& stream, View data) {
    communicator.all_reduce(stream, data, "bucket 0");
    stream.synchronize();
  };
  static const std::vector<FailureCase> cases = {
      {"naive", "naive", reduce},
      {"ring", "ring", reduce},
      {"doubling", "doubling", reduce},
      {"tree", "tree", reduce},
      {"halving_doubling", "halving-doubling", reduce},
      {"one_shot", "one-shot", reduce, 2000},
      {"one_shot_of_short_data", "one-shot", reduce},
      {"two_shot", "two-shot", reduce},
      {"reduce_scatter", "ring",
       [](Communicator& communicator, Stream& stream, View data) {
         communicator.reduce_scatter(stream, data, "shard");
         stream.synchronize();
       }},
      {"broadcast", "ring",
       [](Communicator& communicator, Stream& stream, View data) {
         communicator.broadcast(stream, 0, data, "weights");
         stream.synchronize();
       }},
      {"broadcast_through_memory", "ring",
       [](Communicator& communicator, Stream& stream, View data) {
         communicator.broadcast(stream, 1, data, "weights");
         stream.synchronize();
       },
       6000},
      {"reduce_through_memory", "ring",
       [](Communicator& communicator, Stream& stream, View data) {
         communicator.reduce(stream, 1, data, "sums");
         stream.synchronize();
       },
       6000},
      {"barrier", "ring",
       [](Communicator& communicator, Stream& stream, View) {
         communicator.barrier(stream, "end");
       }},
      {"require_equal", "ring",
       [](Communicator& communicator, Stream& stream, View) {
         communicator.require_equal(stream, {{"batch", "64"}, {"rate", "0.1"}});
       }},
  };
  return cases;
}

class FailureTest : public testing::TestWithParam<std::tuple<FailureCase, int>> {
 protected:
  const FailureCase& test_case() const { return std::get<0>(GetParam()); }
  int size() const { return std::get<1>(GetParam()); }

  /// Runs two collectives, the second of which would meet whoever left the first. Rank `failing`
  /// fails at its exchange `fails_at`. Returns how many exchanges that rank came to.
  int run(int failing, int fails_at, std::vector<std::string>& messages) {
    LocalGroup group(size());
    std::atomic<int> exchanges{0};
    messages = messages_of_ranks(size(), [&](int rank) {
      FailingTransport transport(group.transport(rank),
                                 rank == failing ? fails_at : FailingTransport::kNever);
      const auto device = open_device({}, {.threads = 1, .overlap = rank % 2 == 0});
      Communicator communicator(transport,
                                {.strategy = test_case().strategy, .timeout_seconds = kTimeout});
      std::vector<float> data(test_case().count, 1.0F);
      for (int round = 0; round < 2; ++round) {
        try {
          test_case().collective(communicator, device->communication(), view_of(data));
        } catch (...) {
          if (rank == failing) exchanges = transport.exchanges();
          throw;
        }
      }
      if (rank == failing) exchanges = transport.exchanges();
    });
    return exchanges;
  }
};

TEST_P(FailureTest, AtEachExchangeStopsEverybodyWithTheRootCause) {
  std::vector<std::string> messages;
  for (int failing = 0; failing < size(); ++failing) {
    const int exchanges = run(failing, FailingTransport::kNever, messages);
    ASSERT_GT(exchanges, 0);
    for (int at = 0; at < exchanges / 2; ++at) {
      const auto begin = steady_clock::now();
      run(failing, at, messages);
      ASSERT_LT(steady_clock::now() - begin, kLongestEnd);
      for (int rank = 0; rank < size(); ++rank) {
        const std::string expected =
            rank == failing
                ? "the cable was cut"
                : "stopped, because rank " + std::to_string(failing) + " failed: the cable was cut";
        EXPECT_EQ(messages[static_cast<std::size_t>(rank)], expected) << "exchange " << at;
      }
    }
  }
}

INSTANTIATE_TEST_SUITE_P(Collectives, FailureTest,
                         testing::Combine(testing::ValuesIn(failure_cases()),
                                          testing::Values(2, 3, 4)),
                         [](const auto& test) {
                           return std::get<0>(test.param).name + "_" +
                                  std::to_string(std::get<1>(test.param));
                         });

TEST(Abort, OutsideOfACollectiveReachesThoseWhoWaitAndThoseWhoComeLater) {
  LocalGroup group(3);
  const auto begin = steady_clock::now();
  const auto messages = messages_of_ranks(3, [&](int rank) {
    const auto device = in_place_device();
    Communicator communicator(group.transport(rank), {.timeout_seconds = kTimeout});
    if (rank == 1) {
      communicator.abort("labels.idx is cut off");
      return;
    }
    if (rank == 2) std::this_thread::sleep_for(std::chrono::milliseconds(50));
    communicator.barrier(device->communication(), "start");
  });
  EXPECT_LT(steady_clock::now() - begin, kLongestEnd);
  EXPECT_EQ(messages[0], "stopped, because rank 1 failed: labels.idx is cut off");
  EXPECT_EQ(messages[2], messages[0]);
  ASSERT_TRUE(group.root_cause());
  EXPECT_EQ(group.root_cause()->rank, 1);
  EXPECT_EQ(group.root_cause()->message, "labels.idx is cut off");
}

TEST(Abort, KeepsTheFirstCauseOnly) {
  LocalGroup group(2);
  EXPECT_FALSE(group.root_cause());
  EXPECT_TRUE(group.abort(1, "first"));
  EXPECT_FALSE(group.abort(0, "second"));
  EXPECT_EQ(group.root_cause()->message, "first");
}

TEST(Abort, CarriesItsCauseInTheSecondaryError) {
  LocalGroup group(2);
  group.abort(1, "out of memory");
  const auto device = in_place_device();
  Communicator communicator(group.transport(0));
  try {
    communicator.barrier(device->communication(), "start");
    FAIL();
  } catch (const CommError&) {
    FAIL() << "a secondary error was taken for a root cause";
  } catch (const Aborted& error) {
    EXPECT_EQ(error.cause().rank, 1);
    EXPECT_EQ(error.cause().message, "out of memory");
  }
}

// The same of memory that a session of peer access shows. Once the world is aborted, at whatever
// moment, each rank overwrites its data as soon as it is let go.
TEST(Abort, NeverLetsARankLeaveWhileItsMemoryIsReached) {
  for (int round = 0; round < 25; ++round) {
    LocalGroup group(3);
    std::atomic<int> sums{0};
    std::thread somebody([&group, &sums, round] {
      while (sums < 3) std::this_thread::yield();
      std::this_thread::sleep_for(std::chrono::microseconds(37 * round));
      group.abort(1, "at some moment");
    });
    const auto messages = messages_of_ranks(3, [&](int rank) {
      const auto device = in_place_device();
      const auto reduce =
          make_all_reduce(round % 2 == 0 ? "two-shot" : "one-shot", group.transport(rank));
      while (true) {
        std::vector<float> data(200000, 1.0F);  // given back each time: a sanitizer watches it
        std::vector<float> few(100, 1.0F);
        try {
          reduce->run(device->communication(), view_of(few), ReduceOp::sum);
          reduce->run(device->communication(), view_of(data), ReduceOp::sum);
        } catch (const Aborted&) {
          std::fill(data.begin(), data.end(), std::numeric_limits<float>::quiet_NaN());
          throw;
        }
        ++sums;
        few.insert(few.end(), data.begin(), data.end());
        const bool right = std::all_of(few.begin(), few.end(), [](float x) { return x == 3; });
        if (!right) throw std::runtime_error("a sum is wrong");
      }
    });
    somebody.join();
    for (const std::string& message : messages) {
      EXPECT_EQ(message, "stopped, because rank 1 failed: at some moment") << "round " << round;
    }
  }
}

// A sender that leaves on an error may overwrite or free its data, so it must not leave while a
// peer reads them. Whatever arrives without an error is what was sent.
TEST(Abort, NeverLetsASenderLeaveWhileItIsRead) {
  for (int round = 0; round < 25; ++round) {
    LocalGroup group(3);
    const std::vector<float> ones(500000, 1.0F);
    std::atomic<int> intact{0}, received{0};
    messages_of_ranks(3, [&](int rank) {
      const auto device = in_place_device();
      Transport& transport = group.transport(rank);
      std::vector<float> data = ones;
      if (rank == 0) {
        try {
          while (true) transport.send(device->communication(), 1, view_of(data));
        } catch (const Aborted&) {
          std::fill(data.begin(), data.end(), 2.0F);
          std::this_thread::sleep_for(std::chrono::milliseconds(2));  // a wrong reader reads on
        }
      } else if (rank == 1) {
        while (true) {
          transport.receive(device->communication(), 0, view_of(data));
          ++received;
          if (data == ones) ++intact;
        }
      } else {
        while (received == 0) std::this_thread::yield();
        std::this_thread::sleep_for(std::chrono::microseconds(37 * round));
        transport.abort("at some moment");
      }
    });
    EXPECT_EQ(intact, received) << "round " << round;
  }
}

/// What rank 0 gets that waits for rank 1, which is late and is `mute` or not.
std::string message_of_waiting(int mute, std::chrono::milliseconds late) {
  LocalGroup group(2);
  std::string message;
  run_ranks(2, [&](int rank) {
    const auto device = in_place_device();
    FailingTransport transport(group.transport(rank), FailingTransport::kNever);
    transport.mute = rank == 0 ? mute : -1;
    Communicator communicator(transport, {.timeout_seconds = 0.2});
    if (rank == 1) std::this_thread::sleep_for(late);
    try {
      communicator.await_all(device->communication(), "saved");
    } catch (const TimeoutError& error) {
      EXPECT_EQ(rank, 0);
      message = error.what();
    } catch (const Aborted&) {
      EXPECT_EQ(rank, 1) << "who waited in vain is the one to tell";
    }
  });
  return message;
}

TEST(AwaitAll, WaitsForWhoAnswersHoweverLate) {
  EXPECT_EQ(message_of_waiting(-1, std::chrono::milliseconds(800)), "");
}

TEST(AwaitAll, NamesWhoDoesNotAnswer) {
  EXPECT_TRUE(message_of_waiting(1, std::chrono::milliseconds(3000))
                  .starts_with("rank 1 has not answered for 0.2 s while all waited for 'saved'"));
}

}  // namespace
}  // namespace ringlet::comm
