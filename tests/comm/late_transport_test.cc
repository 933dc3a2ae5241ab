// The local transport on streams that work behind the host, as CUDA's do, without a GPU: every
// collective on devices that do their work as late and in as bad an order as events permit.
#include <gtest/gtest.h>

#include <barrier>
#include <cmath>
#include <cstdint>
#include <limits>
#include <string>
#include <tuple>
#include <vector>

#include "comm/communicator.h"
#include "kernels/memory.h"
#include "tests/comm/failing_transport.h"
#include "tests/comm/late_device.h"
#include "tests/comm/ranks.h"

namespace ringlet::comm {
namespace {

using Values = std::vector<float>;

constexpr LateOrder kOrders[] = {{0, false}, {1, false}, {2, false}, {3, false}, {4, false},
                                 {5, false}, {2, true},  {3, true},  {4, true}};

/// An integer, so that sums are exact; different for each rank, round and element.
float value(int rank, int round, std::int64_t i) {
  return static_cast<float>((i * 7 + rank * 131 + round * 17) % 1009);
}

Values values_of(int rank, int round, std::int64_t count) {
  Values values(static_cast<std::size_t>(count));
  for (std::int64_t i = 0; i < count; ++i) {
    values[static_cast<std::size_t>(i)] = value(rank, round, i);
  }
  return values;
}

Values sum_of_ranks(int size, int round, std::int64_t count) {
  Values sum(static_cast<std::size_t>(count), 0.0F);
  for (int rank = 0; rank < size; ++rank) {
    const Values values = values_of(rank, round, count);
    for (std::size_t i = 0; i < sum.size(); ++i) sum[i] += values[i];
  }
  return sum;
}

/// One replica as a training step uses it: the compute stream writes data, the communication stream
/// exchanges them, the compute stream reads the result and at once overwrites it.
class LateRank {
 public:
  LateRank(LateMachine& machine, int rank, bool reads_others, std::int64_t count)
      : device_(machine, rank, reads_others), data_(device_, {count}) {
    // The first growth would let the device come to rest in the middle of a round.
    device_.communication().workspace(64 * (count + 64));
  }

  LateStream& stream() { return device_.communication(); }
  View data() const { return data_; }

  void produce(const Values& values) {
    device_.compute().do_late(
        [data = data_.f32(), values] { std::copy(values.begin(), values.end(), data); });
    device_.compute().record(*ready_);
    device_.communication().wait(*ready_);
  }
  void consume(Values& result) {
    device_.communication().record(*done_);
    device_.compute().wait(*done_);
    device_.compute().do_late([data = data_.view(), &result] {
      result.assign(data.f32(), data.f32() + data.count());
      std::fill(data.f32(), data.f32() + data.count(), std::numeric_limits<float>::quiet_NaN());
    });
  }
  void finish() {
    device_.compute().synchronize();
    device_.communication().synchronize();
  }

 private:
  LateDevice device_;
  Tensor data_;
  std::unique_ptr<Event> ready_ = device_.make_event();
  std::unique_ptr<Event> done_ = device_.make_event();
};

struct LateWorld {
  int size;
  bool reads_others;
  LateOrder order;
};

/// Every rank's results of `kRounds` collectives that are all handed over before the first of them
/// begins: collective(communicator, rank's end, round), then all of the rank's data.
constexpr int kRounds = 4;

template <class Input, class Collective>
std::vector<std::vector<Values>> run_late(const LateWorld& world, const std::string& strategy,
                                          std::int64_t count, Input input, Collective collective) {
  LateMachine machine(world.order);
  const LateOperations operations;
  LocalGroup group(world.size, {.operations = &operations});
  std::barrier handed_over(world.size);
  std::vector<std::vector<Values>> results(static_cast<std::size_t>(world.size),
                                           std::vector<Values>(kRounds));
  run_ranks(world.size, [&](int rank) {
    LateRank replica(machine, rank, world.reads_others, count);
    Communicator communicator(group.transport(rank), {.strategy = strategy, .timeout_seconds = 20});
    for (int round = 0; round < kRounds; ++round) {
      replica.produce(input(rank, round));
      collective(communicator, replica, round);
      replica.consume(results[static_cast<std::size_t>(rank)][static_cast<std::size_t>(round)]);
    }
    handed_over.arrive_and_wait();
    replica.finish();
  });
  EXPECT_EQ(machine.violation(), "");
  return results;
}

std::vector<LateWorld> worlds() {
  std::vector<LateWorld> all;
  for (const int size : {1, 2, 3, 4, 5, 8}) {
    for (const bool reads_others : {true, false}) {
      for (const LateOrder order : kOrders) all.push_back({size, reads_others, order});
    }
  }
  return all;
}

std::string text_of_world(const LateWorld& world) {
  return std::to_string(world.size) + " ranks, " + (world.reads_others ? "in" : "out of") +
         " reach, order " + std::to_string(world.order.seed) +
         (world.order.restless ? " restless" : "");
}

class LateAllReduce : public testing::TestWithParam<std::string> {};

TEST_P(LateAllReduce, SumsInWhateverOrderTheStreamsRun) {
  for (const LateWorld& world : worlds()) {
    if (needs_peer_access(GetParam()) && !world.reads_others) continue;
    for (const std::int64_t count : {1, 7, 1001}) {
      const auto results = run_late(
          world, GetParam(), count,
          [count](int rank, int round) { return values_of(rank, round, count); },
          [](Communicator& communicator, LateRank& replica, int) {
            communicator.all_reduce(replica.stream(), replica.data(), "gradients");
          });
      for (const auto& of_rank : results) {
        for (int round = 0; round < kRounds; ++round) {
          ASSERT_EQ(of_rank[static_cast<std::size_t>(round)],
                    sum_of_ranks(world.size, round, count))
              << text_of_world(world) << ", " << count << " values, round " << round;
        }
      }
    }
  }
}

INSTANTIATE_TEST_SUITE_P(Strategies, LateAllReduce,
                         testing::Values("naive", "ring", "doubling", "one-shot", "two-shot"),
                         [](const auto& test) { return identifier(test.param); });

TEST(LateAllReduce, NamesTheDeviceWhoseMemoryIsOutOfReach) {
  LateMachine machine({});
  const LateOperations operations;
  LocalGroup group(2, {.operations = &operations});
  const auto messages = messages_of_ranks(2, [&](int rank) {
    LateRank replica(machine, rank, false, 10);
    Communicator communicator(group.transport(rank),
                              {.strategy = "two-shot", .timeout_seconds = 20});
    communicator.all_reduce(replica.stream(), replica.data(), "gradients");
    replica.finish();
  });
  EXPECT_TRUE(contains(messages[0] + messages[1], "does not reach the memory of meta:"))
      << messages[0] << messages[1];
}

TEST(LateBroadcast, GivesTheRootsDataInWhateverOrderTheStreamsRun) {
  constexpr std::int64_t kCount = 100;
  for (const LateWorld& world : worlds()) {
    const auto results = run_late(
        world, "ring", kCount, [](int rank, int round) { return values_of(rank, round, kCount); },
        [&world](Communicator& communicator, LateRank& replica, int round) {
          communicator.broadcast(replica.stream(), round % world.size, replica.data(), "weights");
        });
    for (const auto& of_rank : results) {
      for (int round = 0; round < kRounds; ++round) {
        ASSERT_EQ(of_rank[static_cast<std::size_t>(round)],
                  values_of(round % world.size, round, kCount))
            << text_of_world(world);
      }
    }
  }
}

TEST(LateAllGather, GathersInPlaceInWhateverOrderTheStreamsRun) {
  constexpr std::int64_t kEach = 10;
  for (const LateWorld& world : worlds()) {
    const std::int64_t count = kEach * world.size;
    const auto results = run_late(
        world, "ring", count,
        [count](int rank, int round) { return values_of(rank, round, count); },
        [](Communicator& communicator, LateRank& replica, int) {
          const View all = replica.data();
          const std::int64_t begin = kEach * communicator.rank();
          communicator.all_gather(replica.stream(), all.slice(begin, begin + kEach), all, "parts");
        });
    for (const auto& of_rank : results) {
      for (int round = 0; round < kRounds; ++round) {
        for (std::int64_t i = 0; i < count; ++i) {
          ASSERT_EQ(of_rank[static_cast<std::size_t>(round)][static_cast<std::size_t>(i)],
                    value(static_cast<int>(i / kEach), round, i))
              << text_of_world(world);
        }
      }
    }
  }
}

// The host's handshake needs nothing of the devices: if it did, this would end in a time-out.
TEST(LateTransport, ReturnsBeforeAnythingHasMoved) {
  LateMachine machine({});
  const LateOperations operations;
  LocalGroup group(2, {.operations = &operations});
  std::barrier exchanged(2);
  run_ranks(2, [&](int rank) {
    LateRank replica(machine, rank, true, 1);
    replica.data().f32()[0] = -1;
    Transport& transport = group.transport(rank);
    transport.set_timeout(20);
    if (rank == 0) {
      replica.produce({5});
      transport.send(replica.stream(), 1, replica.data());
    } else {
      transport.receive(replica.stream(), 0, replica.data());
      EXPECT_EQ(replica.data().f32()[0], -1);
    }
    exchanged.arrive_and_wait();
    replica.finish();
    EXPECT_EQ(replica.data().f32()[0], 5);
    exchanged.arrive_and_wait();
  });
}

TEST(LateTransport, RunsTheHostsCollectivesBetweenTheDevices) {
  LateMachine machine({1});
  const LateOperations operations;
  LocalGroup group(3, {.operations = &operations});
  run_ranks(3, [&](int rank) {
    LateRank replica(machine, rank, true, 10);
    Communicator communicator(group.transport(rank), {.timeout_seconds = 20});
    replica.produce(values_of(rank, 0, 10));
    communicator.all_reduce(replica.stream(), replica.data(), "gradients");
    EXPECT_EQ(communicator.gather_text(replica.stream(), std::to_string(rank), "ranks"),
              (std::vector<std::string>{"0", "1", "2"}));
    EXPECT_EQ(Values(replica.data().f32(), replica.data().f32() + 10), sum_of_ranks(3, 0, 10));
    communicator.require_equal(replica.stream(), {{"batch", "64"}});
    communicator.barrier(replica.stream(), "end");
  });
}

TEST(LateTransport, RefusesToMixHostAndDeviceMemory) {
  LateMachine machine({});
  LocalGroup group(2);
  const auto messages = messages_of_ranks(2, [&](int rank) {
    group.transport(rank).set_timeout(20);
    if (rank == 0) {
      LateRank replica(machine, 0, true, 1);
      group.transport(0).send(replica.stream(), 1, replica.data());
    } else {
      const auto device = in_place_device();
      Values data(1);
      group.transport(1).receive(device->communication(), 0, view_of(data));
    }
  });
  EXPECT_EQ(messages[1],
            "rank 0 sends from meta:0, but rank 1 receives on cpu:0; all replicas' devices must be "
            "of one kind");
  EXPECT_TRUE(contains(messages[0], "stopped, because rank 1 failed")) << messages[0];
}

/// Rank `failing` fails at its exchange `fails_at` of two all-reduces; every rank then lets its own
/// streams come to rest and gives its memory back.
void fail_late(const std::string& strategy, const LateWorld& world, int failing, int fails_at) {
  LateMachine machine(world.order);
  const LateOperations operations;
  LocalGroup group(world.size, {.operations = &operations});
  const auto messages = messages_of_ranks(world.size, [&](int rank) {
    FailingTransport transport(group.transport(rank),
                               rank == failing ? fails_at : FailingTransport::kNever);
    LateRank replica(machine, rank, world.reads_others, 100);
    Communicator communicator(transport, {.strategy = strategy, .timeout_seconds = 20});
    try {
      for (int round = 0; round < 2; ++round) {
        replica.produce(values_of(rank, round, 100));
        communicator.all_reduce(replica.stream(), replica.data(), "gradients");
      }
    } catch (...) {
      replica.finish();
      throw;
    }
    replica.finish();
  });
  EXPECT_EQ(machine.violation(), "") << strategy << ", " << text_of_world(world) << ", rank "
                                     << failing << " fails at " << fails_at;
  for (int rank = 0; rank < world.size; ++rank) {
    const std::string& message = messages[static_cast<std::size_t>(rank)];
    EXPECT_FALSE(contains(message, "hangs")) << message;
    EXPECT_FALSE(contains(message, "waited")) << message;
  }
  EXPECT_EQ(messages[static_cast<std::size_t>(failing)], "the cable was cut");
}

TEST(LateTransport, ComesToRestWhereverARankFails) {
  for (const std::string strategy : {"naive", "ring", "doubling", "one-shot", "two-shot"}) {
    const bool direct = needs_peer_access(strategy);
    for (const int size : {2, 3, 4}) {
      for (const LateOrder order : {LateOrder{0, false}, LateOrder{1, false}, LateOrder{2, true}}) {
        for (int failing = 0; failing < size; ++failing) {
          for (int at = 0; at < 2; ++at) {
            fail_late(strategy, {size, direct || at == 0, order}, failing, at);
          }
        }
      }
    }
  }
}

}  // namespace
}  // namespace ringlet::comm
