// A probe goes by what it measures, and comes to the same table on every rank. Here strategies that
// do nothing, or wait, stand in for fast and slow ones.
#include "comm/all_reduce/probe.h"

#include <gtest/gtest.h>
#include <sched.h>

#include <atomic>
#include <chrono>
#include <limits>
#include <string>
#include <thread>
#include <vector>

#include "base/processors.h"
#include "comm/communicator.h"
#include "tests/comm/processes.h"
#include "tests/comm/ranks.h"

namespace ringlet::comm {
namespace {

/// Does nothing for so many bytes and more, and waits for less. By what it states it is the worst.
template <std::int64_t kFrom>
class Idle final : public AllReduce {
 public:
  static constexpr const char* kName = kFrom == 0 ? "idle" : "idle-for-much";
  static constexpr Needs kNeeds = Needs::nothing;
  static PathCost path_cost(int, double) { return {1e9, 0, 0}; }
  using AllReduce::AllReduce;
  const char* name() const override { return kName; }
  void run(Stream&, View data, ReduceOp) override {
    if (data.bytes() < kFrom) std::this_thread::sleep_for(std::chrono::milliseconds(10));
  }
  std::optional<std::int64_t> elements_sent(std::int64_t) const override { return 0; }
};

/// Does nothing but count its calls, of both ranks.
class Counted final : public AllReduce {
 public:
  static constexpr const char* kName = "counted";
  static constexpr Needs kNeeds = Needs::nothing;
  static PathCost path_cost(int, double) { return {1e9, 0, 0}; }
  using AllReduce::AllReduce;
  const char* name() const override { return kName; }
  void run(Stream&, View, ReduceOp) override { ++calls; }
  std::optional<std::int64_t> elements_sent(std::int64_t) const override { return 0; }
  inline static std::atomic<int> calls{0};
};

Strategies with(auto... classes) {
  Strategies strategies;
  (strategies.add<typename decltype(classes)::type>(), ...);
  return strategies;
}

/// The result of each rank of a group of threads.
std::vector<ProbeResult> probe_on(int ranks, const Strategies& strategies,
                                  const ProbeOptions& options) {
  LocalGroup group(ranks);
  std::vector<ProbeResult> results(static_cast<std::size_t>(ranks));
  run_ranks(ranks, [&](int rank) {
    const auto device = in_place_device();
    Communicator communicator(group.transport(rank),
                              {.strategy = "auto", .strategies = strategies});
    results[static_cast<std::size_t>(rank)] = communicator.probe(device->communication(), options);
    EXPECT_TRUE(communicator.goes_by_costs()) << "a probe changes nothing by itself";
  });
  return results;
}

// More than a busy machine needs: these tests are of what is chosen, not of the budget.
constexpr ProbeOptions kPatient{.seconds = 30, .largest = 1 << 18};

TEST(Probe, TakesWhatIsFastWhateverItStates) {
  for (const int ranks : {2, 3}) {
    const auto results = probe_on(ranks, with(std::type_identity<Idle<0>>()), kPatient);
    for (const ProbeResult& result : results) {
      ASSERT_EQ(result.table.size(), 1U) << format_table(result.table);
      EXPECT_EQ(result.table.front().strategy, "idle");
      EXPECT_EQ(result.table.front().ranks, ranks);
      EXPECT_EQ(result.table.front().from_bytes, 0);
      EXPECT_GT(result.seconds, 0);
    }
  }
}

TEST(Probe, SeesFromWhichSizeOnAnotherIsFaster) {
  constexpr std::int64_t kFrom = 1 << 16;
  const auto results = probe_on(2, with(std::type_identity<Idle<kFrom>>()), kPatient);
  const StrategyTable& table = results.front().table;
  EXPECT_EQ(look_up(table, 2, kFrom), "idle-for-much") << format_table(table);
  EXPECT_EQ(look_up(table, 2, 1 << 28), "idle-for-much") << "beyond what was measured";
  EXPECT_NE(look_up(table, 2, kFrom - 1), "idle-for-much");
  EXPECT_EQ(format_table(table), format_table(results.back().table));
}

// One that would follow a barrier, or another strategy, would take longer than those of a training.
TEST(Probe, TimesAShortCallBehindAnotherOfTheStrategy) {
  const std::vector<int> processors = allowed_processors();
  if (processors.size() < 2) GTEST_SKIP() << "ranks would take turns";
  constexpr int kRanks = 2, kLooks = 6, kRounds = 3, kTimed = 4;
  Counted::calls = 0;
  LocalGroup group(kRanks);
  run_ranks(kRanks, [&](int rank) {
    cpu_set_t one;
    CPU_ZERO(&one);
    CPU_SET(static_cast<std::size_t>(processors[static_cast<std::size_t>(rank)]), &one);
    ASSERT_EQ(sched_setaffinity(0, sizeof one, &one), 0);
    const auto device = in_place_device();
    Communicator communicator(
        group.transport(rank),
        {.strategy = "auto", .strategies = with(std::type_identity<Counted>())});
    communicator.probe(device->communication(), {.seconds = 30, .only_least = true});
  });
  EXPECT_EQ(Counted::calls, kRanks * 2 * (kLooks + kRounds * kTimed));
}

TEST(Probe, TakesOfEqualsTheOneThatStatesLess) {
  constexpr double kUnknown = std::numeric_limits<double>::infinity();
  const auto chosen = [](const std::vector<double>& measured) {
    const std::vector<double> stated = {3, 1, 2};
    return choose_of(measured, stated, 1.06);
  };
  EXPECT_EQ(chosen({1.00, 1.05, 1.02}), 1U);
  EXPECT_EQ(chosen({1.00, 1.07, 1.05}), 2U) << "what states least is behind";
  EXPECT_EQ(chosen({1.00, 1.07, 1.08}), 0U);
  EXPECT_EQ(chosen({1.00, kUnknown, 1.05}), 2U);
  EXPECT_EQ(chosen({kUnknown, kUnknown, kUnknown}), 1U);
  EXPECT_EQ(choose_of(std::vector{1.05, 1.04, 1.00}, std::vector{1.0, 1.04, 2.0}, 1.06), 1U)
      << "two state as much";
  EXPECT_EQ(choose_of(std::vector{kUnknown, kUnknown}, std::vector{1.04, 1.0}, 1.06), 1U);
}

TEST(Probe, ComesToOneTableOnAllRanks) {
  for (const int ranks : {2, 5}) {
    const auto results = probe_on(ranks, {}, {});
    for (const ProbeResult& result : results) {
      EXPECT_EQ(format_table(result.table), format_table(results.front().table));
      EXPECT_EQ(result.seconds, results.front().seconds) << "rank 0's";
      EXPECT_FALSE(result.table.empty());
      for (const ProbedTime& time : result.times) EXPECT_GT(time.seconds, 0);
    }
  }
}

TEST(Probe, TakesBetweenTwoSizesSoMuchACallAndSoMuchAByte) {
  const ProbedTime fewer{1024, "ring", 3}, more{4096, "ring", 9};
  EXPECT_EQ(seconds_between(fewer, more, 1024), 3);
  EXPECT_EQ(seconds_between(fewer, more, 2048), 5);
  EXPECT_EQ(seconds_between(fewer, more, 4096), 9);
}

TEST(Probe, OfOneRankHasNothingToTell) { EXPECT_TRUE(probe_on(1, {}, {}).front().table.empty()); }

TEST(Probe, GoesOverProcessesToo) {
  Processes world({.processes = 2, .replicas = 1});
  run_ranks(world.size(), [&](int rank) {
    const auto device = in_place_device();
    Communicator communicator(world.transport(rank), {.strategy = "auto"});
    const ProbeResult result = communicator.probe(device->communication(), kPatient);
    EXPECT_FALSE(result.table.empty());
    communicator.use(result.table);
    EXPECT_FALSE(communicator.goes_by_costs());
    EXPECT_EQ(format_table(communicator.table()), format_table(result.table));
  });
}

TEST(Communicator, OfAutoPicksByTheTableThatItIsGiven) {
  LocalGroup group(2);
  run_ranks(2, [&](int rank) {
    Communicator communicator(group.transport(rank), {.strategy = "auto"});
    communicator.use({{2, 0, "tree"}, {2, 4096, "naive"}});
    EXPECT_STREQ(communicator.strategy(), "auto");
    EXPECT_STREQ(communicator.strategy_for(4095), "tree");
    EXPECT_STREQ(communicator.strategy_for(4096), "naive");
    const Communicator ring(group.transport(rank), {.strategy = "ring"});
    EXPECT_TRUE(ring.table().empty());
    EXPECT_FALSE(ring.goes_by_costs());
  });
}

TEST(StrategyTable, ComesBackFromItsText) {
  const StrategyTable table = {{3, 0, "doubling"}, {3, 4096, "two-shot"}};
  EXPECT_EQ(format_table(table), "0 doubling;4096 two-shot");
  const StrategyTable back = parse_table(format_table(table), 3);
  ASSERT_EQ(back.size(), 2U);
  EXPECT_EQ(back[1].from_bytes, 4096);
  EXPECT_EQ(back[1].strategy, "two-shot");
  EXPECT_EQ(back[1].ranks, 3);
  for (const char* wrong : {"", "ring", "0", "0 ", "1 ring", "0 ring;0 tree", "-1 ring",
                            "0 ring;99999999999999999999 tree", "0ring"}) {
    EXPECT_THROW(parse_table(wrong, 2), std::runtime_error) << wrong;
  }
  EXPECT_THROW(parse_table("0 ring", 1), std::runtime_error);
}

TEST(StrategyTable, GivesTheRangesOfTheNearestNumberOfRanks) {
  const StrategyTable table = {{2, 0, "a"}, {2, 9, "b"}, {8, 0, "c"}};
  EXPECT_EQ(format_table(ranges_for(table, 3)), "0 a;9 b");
  EXPECT_EQ(format_table(ranges_for(table, 7)), "0 c");
  EXPECT_EQ(ranges_for(table, 7).front().ranks, 7);
  EXPECT_TRUE(ranges_for({}, 2).empty());
  const StrategyTable as_far{{2, 0, "a"}, {8, 0, "b"}, {2, 9, "c"}, {8, 9, "d"}};
  EXPECT_EQ(format_table(ranges_for(as_far, 4)), "0 a;9 c");
  EXPECT_EQ(look_up(as_far, 4, 8), "a");
  EXPECT_EQ(look_up(as_far, 4, 9), "c");
}

}  // namespace
}  // namespace ringlet::comm
