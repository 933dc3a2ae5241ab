#include "comm/transport/local/local_transport.h"

#include <gtest/gtest.h>
#include <sched.h>

#include <array>
#include <atomic>
#include <cmath>
#include <cstring>
#include <numeric>
#include <random>
#include <set>
#include <string>
#include <vector>

#include "base/error.h"
#include "base/processors.h"
#include "base/trace.h"
#include "comm/communicator.h"
#include "tests/comm/ranks.h"

namespace ringlet::comm {
namespace {

using std::chrono::microseconds;

TEST(LocalTransport, KnowsItsWorld) {
  LocalGroup group(3);
  for (int rank = 0; rank < 3; ++rank) {
    EXPECT_EQ(group.transport(rank).world(), (World{rank, 3, rank, 3, 0, 1, rank, 3}));
  }
  EXPECT_EQ(group.replicas(), 3);
  EXPECT_EQ(group.process(), 0);
  EXPECT_EQ(group.processes(), 1);
  EXPECT_EQ(group.agree("key", "its own", 1), "its own");
  EXPECT_THROW(group.agree("key", std::nullopt, 1), ContractError);
  EXPECT_THROW(group.transport(3), ContractError);
  EXPECT_THROW(LocalGroup(0), ContractError);
}

TEST(LocalTransport, RefusesAbsurdNumbersOfRanksAtOnce) {
  try {
    const LocalGroup group(5000);
    FAIL() << "5000 ranks have mailboxes";
  } catch (const ContractError& error) {
    EXPECT_STREQ(error.what(),
                 "5000 replicas in one process are more than 1024; give fewer devices, or use "
                 "several processes");
  }
}

// The same elements of all ranks are read together: lines of unlike sets of the first cache.
TEST(LocalTransport, GivesEachRankMemoryElsewhereInAPage) {
  constexpr std::uintptr_t kPage = 4096, kAlignment = 256;
  for (const int ranks : {1, 2, 3, 5, 16}) {
    LocalGroup group(ranks);
    std::set<std::uintptr_t> begins;
    for (int rank = 0; rank < ranks; ++rank) {
      const auto device = open_device({DeviceKind::cpu, 0});
      const std::int64_t held = device->bytes_held();
      for (const std::int64_t count : {1, 1000, 1 << 20}) {
        const Tensor data(group.transport(rank).allocator(*device), {count});
        std::memset(data.view().data(), 1, static_cast<std::size_t>(data.view().bytes()));
        const auto begin = reinterpret_cast<std::uintptr_t>(data.view().data());
        EXPECT_EQ(begin % kAlignment, 0U);
        begins.insert(begin % kPage);
      }
      EXPECT_EQ(device->bytes_held(), held);
    }
    EXPECT_EQ(std::ssize(begins), ranks) << ranks << " ranks";
    for (auto next = begins.begin(); ranks == 2 && next != begins.end(); ++next) {
      EXPECT_TRUE(*next == 0 || *next == kPage / 2) << *next;
    }
  }
}

TEST(LocalTransport, TakesNoTimeOutThatIsNone) {
  LocalGroup group(2);
  for (const double seconds : {0.0, -1.0, std::nan("")}) {
    EXPECT_THROW(group.transport(0).set_timeout(seconds), ContractError);
  }
}

TEST(LocalTransport, CopiesAndAdds) {
  LocalGroup group(2);
  run_ranks(2, [&](int rank) {
    const auto device = in_place_device();
    Transport& transport = group.transport(rank);
    const int other = 1 - rank;
    std::vector<float> mine{1.0F + rank, 2, 3}, theirs{10, 20, 30};
    transport.exchange(device->communication(), other, view_of(mine), other, view_of(theirs),
                       Combine::add);
    EXPECT_EQ(theirs, (std::vector<float>{11.0F + other, 22, 33}));
    transport.exchange(device->communication(), other, view_of(mine), other, view_of(theirs));
    EXPECT_EQ(theirs, (std::vector<float>{1.0F + other, 2, 3}));
    EXPECT_EQ(transport.bytes_sent(), 2 * 3 * 4);
  });
}

// Long enough to be moved past the caches, at addresses that are aligned to nothing but floats.
TEST(LocalTransport, MovesEveryElementWhateverTheAlignment) {
  LocalGroup group(2);
  run_ranks(2, [&](int rank) {
    const auto device = in_place_device();
    for (std::int64_t begin = 0; begin < 16; ++begin) {
      for (const std::int64_t count : {1023, 1024, 1025, 1039, 5000}) {
        std::vector<float> mine(5100), theirs(5100, -1.0F);
        std::iota(mine.begin(), mine.end(), static_cast<float>(rank));
        group.transport(rank).exchange(device->communication(), 1 - rank,
                                       view_of(mine).slice(20, 20 + count), 1 - rank,
                                       view_of(theirs).slice(begin, begin + count));
        for (std::int64_t i = 0; i < 5100; ++i) {
          const bool moved = begin <= i && i < begin + count;
          const auto expected = moved ? static_cast<float>(20 + i - begin + 1 - rank) : -1.0F;
          ASSERT_EQ(theirs[static_cast<std::size_t>(i)], expected) << begin << " " << count;
        }
      }
    }
  });
}

TEST(LocalTransport, SendsWhatWasThereBeforeWhenItAddsInPlace) {
  LocalGroup group(2);
  run_ranks(2, [&](int rank) {
    const auto device = in_place_device();
    std::vector<float> data(5000, 1.0F + rank);
    for (int round = 0; round < 20; ++round) {
      group.transport(rank).exchange(device->communication(), 1 - rank, view_of(data), 1 - rank,
                                     view_of(data), Combine::add);
    }
    EXPECT_EQ(data, std::vector<float>(5000, 3.0F * (1 << 19)));
  });
}

// Short messages and long ones on their way to a rank that comes late, from memory that changes as
// soon as the sender has it back.
TEST(LocalTransport, KeepsTheOrderOfCopiesAndOthers) {
  constexpr int kMessages = 48;
  // Those in their slots, copies, and those that wait at the sender; each beside each other kind.
  constexpr std::array kLengths{1U, 5U, 5000U, 4U, 2U, 512U, 513U, 3U, 5000U, 300U, 0U, 100U};
  const auto length_of = [kLengths](int message) {
    return kLengths[static_cast<std::size_t>(message) % kLengths.size()];
  };
  LocalGroup group(2);
  run_ranks(2, [&](int rank) {
    const auto device = in_place_device();
    Stream& stream = device->communication();
    if (rank == 1) std::this_thread::sleep_for(std::chrono::milliseconds(20));
    for (int message = 0; message < kMessages; ++message) {
      std::vector<float> data(length_of(message), static_cast<float>(message));
      if (rank == 0) {
        group.transport(0).send(stream, 1, view_of(data));
        std::fill(data.begin(), data.end(), -1.0F);
        continue;
      }
      group.transport(1).receive(stream, 0, view_of(data), Combine::add);
      ASSERT_EQ(data, std::vector<float>(data.size(), 2.0F * message)) << message;
    }
  });
}

TEST(LocalTransport, LetsOnlySoManyShortMessagesGoAhead) {
  LocalGroup group(2);
  const auto device = in_place_device();
  Stream& stream = device->communication();
  Transport& transport = group.transport(0);
  transport.set_timeout(0.05);
  std::vector<float> data(1);
  for (std::uint64_t i = 0; i < Mailbox::kSlots; ++i) transport.send(stream, 1, view_of(data));
  try {
    transport.send(stream, 1, view_of(data));
    FAIL() << "there is a slot for it";
  } catch (const TimeoutError& error) {
    EXPECT_TRUE(contains(error.what(), "; rank 0 sends 4 bytes to rank 1")) << error.what();
  }
}

TEST(LocalTransport, LetsEitherSideBeLeftOut) {
  LocalGroup group(3);
  run_ranks(3, [&](int rank) {
    const auto device = in_place_device();
    Transport& transport = group.transport(rank);
    std::vector<float> data{static_cast<float>(rank)};
    if (rank == 0) {
      transport.send(device->communication(), 1, view_of(data));
    } else if (rank == 1) {  // passes on what it had before, in one step
      std::vector<float> arriving(1);
      transport.exchange(device->communication(), 2, view_of(data), 0, view_of(arriving));
      EXPECT_EQ(arriving[0], 0.0F);
    } else {
      transport.receive(device->communication(), 1, view_of(data));
      EXPECT_EQ(data[0], 1.0F);
    }
    transport.exchange(device->communication(), kNobody, {}, kNobody, {});
    EXPECT_EQ(transport.bytes_sent(), rank == 2 ? 0 : 4);
  });
}

TEST(LocalTransport, ChecksTheContract) {
  LocalGroup group(2);
  const auto device = in_place_device();
  std::vector<float> data(1);
  std::int32_t integer = 0;
  Transport& transport = group.transport(0);
  Stream& stream = device->communication();
  EXPECT_THROW(transport.send(stream, 0, view_of(data)), ContractError);
  EXPECT_THROW(transport.send(stream, 2, view_of(data)), ContractError);
  EXPECT_THROW(transport.receive(stream, -2, view_of(data)), ContractError);
  std::vector<float> longer(10);
  EXPECT_THROW(transport.exchange(stream, 1, view_of(longer).slice(0, 5), 1,
                                  view_of(longer).slice(4, 9), Combine::add),
               ContractError);
  EXPECT_THROW(transport.exchange(stream, 1, view_of(longer), 1, view_of(longer)), ContractError);
  EXPECT_THROW(transport.receive(stream, 1, View(&integer, {1}, DType::u8), Combine::add),
               ContractError);
}

TEST(LocalTransport, NamesBothSidesOfDifferentLengths) {
  LocalGroup group(2);
  std::vector<std::string> messages = messages_of_ranks(2, [&](int rank) {
    const auto device = in_place_device();
    std::vector<float> data(rank == 0 ? 5U : 3U);
    if (rank == 0) {
      group.transport(0).send(device->communication(), 1, view_of(data));
      group.transport(0).receive(device->communication(), 1, view_of(data));
    } else {
      group.transport(1).receive(device->communication(), 0, view_of(data));
    }
  });
  EXPECT_TRUE(contains(messages[1], "rank 0 sends 20 bytes")) << messages[1];
  EXPECT_TRUE(contains(messages[1], "rank 1 expects 12 bytes")) << messages[1];
  EXPECT_TRUE(contains(messages[0], "stopped, because rank 1 failed: rank 0 sends 20"));
}

TEST(LocalTransport, NamesTheMessagesThatDoNotMatch) {
  LocalGroup group(2);
  const std::vector<std::string> messages = messages_of_ranks(2, [&](int rank) {
    const auto device = in_place_device();
    std::vector<float> data(2);
    Transport& own = group.transport(rank);
    own.set_timeout(5);
    if (rank == 0) {
      const FlightRecorder::Moving moving(own.recorder(), {CollectiveKind::activation, 2}, {});
      own.send(device->communication(), 1, view_of(data));
      own.receive(device->communication(), 1, view_of(data));
    } else {
      const FlightRecorder::Moving moving(own.recorder(), {}, {CollectiveKind::activation, 1});
      own.receive(device->communication(), 0, view_of(data));
    }
  });
  EXPECT_TRUE(
      contains(messages[1],
               "rank 0 sends 8 bytes in the activation of micro-batch 2, but rank 1 expects "
               "8 bytes in the activation of micro-batch 1; "))
      << messages[1];
}

TEST(LocalTransport, SaysForWhichMessageItWaited) {
  LocalGroup group(2);
  const auto device = in_place_device();
  group.transport(0).set_timeout(0.05);
  std::vector<float> data(Mailbox::kLongestCopy);
  const FlightRecorder::Moving moving(group.transport(0).recorder(),
                                      {CollectiveKind::activation, 2}, {});
  try {
    group.transport(0).send(device->communication(), 1, view_of(data));
    FAIL();
  } catch (const TimeoutError& error) {
    EXPECT_TRUE(contains(error.what(),
                         "rank 0 waited 0.05 s in an exchange with rank 1 (activation of "
                         "micro-batch 2), which did not come; "))
        << error.what();
    EXPECT_TRUE(contains(error.what(),
                         "; rank 0 sends 8192 bytes to rank 1 (activation of micro-batch 2); "))
        << error.what();
  }
}

TEST(LocalTransport, SaysWhoDidNotCome) {
  LocalGroup group(2);
  const auto device = in_place_device();
  group.transport(0).set_timeout(0.05);
  group.transport(1).recorder().set_activity("data loading");
  std::vector<float> data(1);
  try {
    group.transport(0).receive(device->communication(), 1, view_of(data));
    FAIL();
  } catch (const TimeoutError& error) {
    EXPECT_TRUE(
        contains(error.what(),
                 "rank 0 waited 0.05 s in an exchange with rank 1, which did not come; rank "
                 "1 was last seen in \"data loading\" 0."))
        << error.what();
  }
  EXPECT_EQ(group.root_cause()->rank, 0);
}

/// Exchanges around a ring that everybody leaves and enters at random times.
void exchange_at_random(int size, int rounds, int longest_delay_us) {
  LocalGroup group(size);
  run_ranks(size, [&](int rank) {
    const auto device = in_place_device();
    std::mt19937 generator(static_cast<unsigned>(rank));
    std::uniform_int_distribution<int> delay(0, longest_delay_us);
    const int next = (rank + 1) % size, previous = (rank + size - 1) % size;
    std::vector<float> mine(100), theirs(100);
    for (int round = 0; round < rounds; ++round) {
      const int pause = delay(generator);
      if (pause % 2 == 1) std::this_thread::sleep_for(microseconds(pause));
      std::fill(mine.begin(), mine.end(), static_cast<float>(rank * 1000 + round));
      group.transport(rank).exchange(device->communication(), next, view_of(mine), previous,
                                     view_of(theirs));
      const std::vector<float> expected(100, static_cast<float>(previous * 1000 + round));
      ASSERT_EQ(theirs, expected) << "round " << round;
    }
  });
}

TEST(LocalTransport, StandsRandomDelays) { exchange_at_random(5, 200, 300); }
TEST(LocalTransport, ServesEightRanksOnFewProcessors) { exchange_at_random(8, 300, 0); }
TEST(LocalTransport, ServesSixteenRanksOnFewProcessors) { exchange_at_random(16, 200, 0); }

// Without spinning every wait sleeps, so a lost wake-up would end in a time-out.
TEST(LocalTransport, LosesNoWakeUp) {
  LocalGroup group(2, {.spin_microseconds = 0});
  run_ranks(2, [&](int rank) {
    const auto device = in_place_device();
    group.transport(rank).set_timeout(20);
    std::vector<float> mine(1), theirs(1);
    for (int round = 0; round < 20000; ++round) {
      group.transport(rank).exchange(device->communication(), 1 - rank, view_of(mine), 1 - rank,
                                     view_of(theirs));
    }
  });
}

TEST(LocalTransport, SpinsOnlyWhereEachRankMayHaveAProcessor) {
  const std::vector<int> allowed = allowed_processors();
  EXPECT_EQ(LocalGroup(2).spin().count() > 0, usable_processors() >= 2);
  std::thread([first = allowed.front()] {
    cpu_set_t one;
    CPU_ZERO(&one);
    CPU_SET(static_cast<std::size_t>(first), &one);
    ASSERT_EQ(sched_setaffinity(0, sizeof one, &one), 0);
    EXPECT_EQ(LocalGroup(2).spin().count(), 0);
  }).join();
}

TEST(LocalTransport, SleepsWhileItWaits) {
  LocalGroup group(2);
  const auto device = in_place_device();
  group.transport(0).set_timeout(0.5);
  std::vector<float> data(1);
  timespec begin{}, end{};
  clock_gettime(CLOCK_THREAD_CPUTIME_ID, &begin);
  EXPECT_THROW(group.transport(0).receive(device->communication(), 1, view_of(data)), TimeoutError);
  clock_gettime(CLOCK_THREAD_CPUTIME_ID, &end);
  const double busy = static_cast<double>(end.tv_sec - begin.tv_sec) +
                      1e-9 * static_cast<double>(end.tv_nsec - begin.tv_nsec);
  EXPECT_LT(busy, 0.1);  // of the 0.5 s that it waited
}

TEST(LocalTransport, TracesWhereTheExchangedPartsLie) {
  LocalGroup group(3);
  run_ranks(3, [&](int rank) {
    const auto device = in_place_device();
    Tracer tracer;
    device->communication().set_tracer(&tracer);
    Communicator communicator(group.transport(rank), {.strategy = "ring"});
    std::vector<float> data(9);
    communicator.all_reduce(device->communication(), view_of(data), "sum");
    std::vector<std::int64_t> sent, taken;
    for (const Span& span : tracer.spans()) {
      if (std::string_view(span.category) != "exchange") continue;
      EXPECT_EQ(span.peer, (rank + 1) % 3);
      EXPECT_EQ(span.details->from, (rank + 2) % 3);
      sent.push_back(span.details->out_at / 12);
      taken.push_back(span.details->in_at / 12);
    }
    const auto part = [rank](int step) { return std::int64_t{(rank + 6 - step) % 3}; };
    EXPECT_EQ(sent, (std::vector{part(0), part(1), part(2), part(3)})) << rank;
    EXPECT_EQ(taken, (std::vector{part(1), part(2), part(3), part(4)})) << rank;
  });
}

TEST(LocalTransport, TracesEachExchange) {
  LocalGroup group(2);
  run_ranks(2, [&](int rank) {
    const auto device = in_place_device();
    Tracer tracer;
    device->communication().set_tracer(&tracer);
    std::vector<float> mine(10), theirs(10);
    group.transport(rank).exchange(device->communication(), 1 - rank, view_of(mine), 1 - rank,
                                   view_of(theirs));
    ASSERT_EQ(tracer.spans().size(), 1U);
    EXPECT_STREQ(tracer.spans()[0].name.data(), "exchange");
    EXPECT_STREQ(tracer.spans()[0].category, "exchange");
    EXPECT_EQ(tracer.spans()[0].peer, 1 - rank);
    EXPECT_EQ(tracer.spans()[0].bytes, 40);
    if (rank == 0) {
      group.transport(0).send(device->communication(), 1, view_of(mine));
    } else {
      group.transport(1).receive(device->communication(), 0, view_of(theirs));
    }
    ASSERT_EQ(tracer.spans().size(), 2U);
    EXPECT_STREQ(tracer.spans()[1].name.data(), rank == 0 ? "send" : "receive");
    EXPECT_EQ(tracer.spans()[1].peer, 1 - rank);
    EXPECT_EQ(tracer.spans()[1].bytes, 40);
  });
}

}  // namespace
}  // namespace ringlet::comm
