// Played schedules: each strategy takes what its formula says, and a modelled network does what it
// should in small.
#include "comm/schedule/play.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <ctime>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "base/error.h"
#include "comm/all_reduce/auto.h"
#include "comm/schedule/recording.h"

namespace ringlet::comm {
namespace {

constexpr CostModel kFast{1e-6, 1 / 200e9, 1 / 100e9}, kNetwork{5e-6, 1 / 50e9, 1 / 100e9};
constexpr CostModel kThreads{0.12e-6, 1 / 50e9, 1 / 16e9};
constexpr double kNear = 0.01;

double predicted(const Strategy& strategy, const Network& network, double bytes, int machines) {
  if (machines == 1) {
    return predicted_seconds(strategy.path_cost, network.ranks, bytes, network.inside);
  }
  const LevelCosts costs =
      strategy.costs_of_levels(machines, network.ranks / machines, bytes, network.between);
  return seconds_of(costs.between, network.between) + seconds_of(costs.inside, network.inside);
}

/// Returns the memory of the schedule's steps.
std::size_t expect_as_predicted(const Strategy& strategy, const Network& network,
                                std::int64_t count) {
  if (!why_not_recorded(strategy, network).empty()) return 0;
  const Schedule schedule = record(strategy.make, network, {.count = count});
  const double played = seconds_of(schedule, network);
  const auto bytes = static_cast<double>(4 * count);
  const double expected = predicted(strategy, network, bytes, network.machines());
  EXPECT_NEAR(played, expected, kNear * expected)
      << strategy.name << " of " << 4 * count << " bytes on " << network.ranks << " ranks, "
      << network.machines() << " machines";
  std::size_t memory = 0;
  for (const RankSchedule& rank : schedule.ranks) memory += rank.steps.capacity() * sizeof(Step);
  return memory;
}

TEST(Play, TakesWhatEachStrategySays) {
  const Strategies strategies;
  for (const Strategy& strategy : strategies.all()) {
    for (int ranks = 2; ranks <= 64; ++ranks) {
      for (const CostModel& costs : {kThreads, kEthernetCosts}) {
        expect_as_predicted(strategy, one_machine(ranks, costs), 32 * ranks);
        expect_as_predicted(strategy, one_machine(ranks, costs), 2048 * ranks);
      }
    }
  }
}

TEST(Play, TakesWhatEachStrategySaysOnMachines) {
  const Strategies strategies;
  for (const Strategy& strategy : strategies.all()) {
    for (const auto& [machines, each] : {std::pair{2, 2}, {3, 2}, {8, 8}}) {
      for (const CostModel& between : {kNetwork, kEthernetCosts}) {
        for (const int elements : {1, 32, 2048, 65536}) {
          expect_as_predicted(strategy, equal_machines(machines, each, between, kFast),
                              elements * machines * each);
        }
      }
    }
  }
}

/// 504 KiB on 4096 ranks.
TEST(PlayOf4096Ranks, TakesWhatEachStrategySaysInLittleTimeAndMemory) {
  constexpr std::int64_t kCount = 504 * 256;
  constexpr double kMostSeconds = 30, kMostOfRing = 10;  // of a processor
  constexpr std::size_t kMostBytes = std::size_t{1} << 30;
  const Strategies strategies;
  for (const Strategy& strategy : strategies.all()) {
    const bool is_ring = strategy.name == std::string("ring");
    // Without level_costs all of it counts as between machines, as on 8 of 8.
    for (const int machines : {1, 512}) {
      if (machines > 1 && strategy.level_costs == nullptr) continue;
      const std::clock_t begin = std::clock();
      const Network network = equal_machines(machines, 4096 / machines, kNetwork, kFast);
      EXPECT_LT(expect_as_predicted(strategy, network, kCount), kMostBytes) << strategy.name;
      const double seconds = static_cast<double>(std::clock() - begin) / CLOCKS_PER_SEC;
      EXPECT_LT(seconds, is_ring ? kMostOfRing : kMostSeconds) << strategy.name;
    }
  }
}

/// On other machines than those of a power of two of ranks, tree's cost is more than it takes.
TEST(Play, TakesNoMoreThanTreeSays) {
  const Strategies strategies;
  const Strategy& tree = *strategies.find("tree");
  for (const int each : {3, 6, 40, 48}) {
    const Network network = equal_machines(2, each, kEthernetCosts, kFast);
    const double played = seconds_of(record(tree.make, network, {.count = 1000}), network);
    EXPECT_LE(played, (1 + kNear) * predicted(tree, network, 4000, 2)) << each;
  }
}

TEST(Play, HasTwoLevelPickedWhereItIsTheFastest) {
  constexpr std::int64_t kCount = 504 * 256;
  const Network network = equal_machines(512, 8, kNetwork, kFast);
  std::string picked;
  const MakeAllReduce make = [&](Transport& transport) {
    auto made = std::make_unique<AutoAllReduce>(transport, Strategies());
    picked = made->name_for(4 * kCount);
    return made;
  };
  const double by_auto = seconds_of(record(make, network, {.count = kCount}), network);
  EXPECT_EQ(picked, "two-level");
  for (const char* other : {"doubling", "halving-doubling", "tree"}) {
    const Schedule schedule = record(Strategies().find(other)->make, network, {.count = kCount});
    EXPECT_LT(by_auto, seconds_of(schedule, network)) << other;
  }
}

/// The step of a rank that sends so many bytes to another one, or receives them.
void add_message(Schedule& schedule, int from, int to, std::int64_t bytes) {
  RankSchedule& sender = schedule.ranks[static_cast<std::size_t>(from)];
  RankSchedule& receiver = schedule.ranks[static_cast<std::size_t>(to)];
  sender.steps.push_back({.to = to, .out = schedule.number_of(bytes)});
  receiver.steps.push_back({.from = from, .in = schedule.number_of(bytes)});
}

Schedule empty_schedule(int ranks) {
  Schedule schedule;
  schedule.ranks.resize(static_cast<std::size_t>(ranks));
  return schedule;
}

TEST(Play, LetsMessagesShareALink) {
  const CostModel link{10, 1, 0}, near{1, 1, 0};
  Schedule schedule = empty_schedule(4);
  add_message(schedule, 0, 2, 100);
  add_message(schedule, 1, 3, 40);
  // Up to 80 both pass at half the pace; the longer one has 60 bytes left then.
  const Network network = equal_machines(2, 2, link, near);
  EXPECT_EQ(play(schedule, network), (std::vector<double>{150, 90, 150, 90}));
  // A message inside of a machine, and one the other way, take no part of it.
  schedule = empty_schedule(4);
  add_message(schedule, 0, 2, 100);
  add_message(schedule, 3, 1, 40);
  EXPECT_EQ(play(schedule, network), (std::vector<double>{110, 50, 110, 50}));
  // Two that begin after a message inside of their machine, which shares nothing.
  schedule = empty_schedule(4);
  add_message(schedule, 0, 1, 20);
  add_message(schedule, 1, 2, 100);
  add_message(schedule, 0, 3, 50);
  EXPECT_EQ(play(schedule, network), (std::vector<double>{131, 181, 181, 131}));
}

TEST(Play, WaitsForASlowRank) {
  const CostModel costs{1, 1, 0};
  Network network = one_machine(8, costs);
  const Schedule ring = record(Strategies().find("ring")->make, network, {.count = 80});
  const double usual = seconds_of(ring, network);
  network.slowness = {1, 1, 1, 3, 1, 1, 1, 1};
  EXPECT_DOUBLE_EQ(seconds_of(ring, network), 3 * usual);
}

TEST(Play, HasASlowRankHoldUpTheOthersOnItsLink) {
  Network network = equal_machines(2, 2, {10, 1, 0}, {1, 1, 0});
  network.slowness = {3, 1, 1, 1};
  Schedule schedule = empty_schedule(4);
  add_message(schedule, 0, 2, 100);
  add_message(schedule, 1, 3, 100);
  EXPECT_EQ(play(schedule, network), (std::vector<double>{430, 210, 430, 210}));
}

TEST(Play, RefusesMessagesOfAnotherLength) {
  Schedule schedule = empty_schedule(2);
  add_message(schedule, 0, 1, 8);
  schedule.ranks[1].steps[0].in = schedule.number_of(4);
  EXPECT_THROW((void)play(schedule, one_machine(2, kFast)), ContractError);
}

/// A rank of a trace may have a step with neither side.
TEST(Play, PassesOverAStepWithoutPeers) {
  Schedule schedule = empty_schedule(2);
  schedule.ranks[0].steps.push_back({});
  add_message(schedule, 0, 1, 8);
  EXPECT_GT(seconds_of(schedule, one_machine(2, kFast)), 0);
}

TEST(Play, TellsOfEachMessageAndStep) {
  const Network network = one_machine(4, {1, 1, 1});
  const Schedule ring = record(Strategies().find("ring")->make, network, {.count = 4});
  std::vector<PlayedMessage> messages;
  std::vector<PlayedStep> steps;
  play(ring, network,
       {.message = [&](const auto& message) { messages.push_back(message); },
        .step = [&](const auto& step) { steps.push_back(step); }});
  EXPECT_EQ(messages.size(), 24U);
  EXPECT_EQ(steps.size(), 24U);
  for (const PlayedMessage& message : messages) {
    EXPECT_EQ(message.to, (message.from + 1) % 4);
    EXPECT_EQ(message.in_step, message.out_step);
    const double begin = message.in_step < 3 ? 9 * message.in_step : 27 + 5 * (message.in_step - 3);
    EXPECT_EQ(message.begin_s, begin);
    EXPECT_EQ(message.arrived_s, begin + 5);
    EXPECT_EQ(message.combined_s, begin + (message.in_step < 3 ? 9 : 5));
  }
  EXPECT_EQ(std::count_if(steps.begin(), steps.end(),
                          [](const PlayedStep& step) { return step.end_s == 27 + 15; }),
            4);
}

TEST(Play, SaysWhyItDoesNotEnd) {
  Schedule schedule = empty_schedule(2);
  add_message(schedule, 0, 1, 1);
  schedule.ranks[1].steps.clear();
  EXPECT_THROW((void)play(schedule, one_machine(2, kFast)), ContractError);
}

}  // namespace
}  // namespace ringlet::comm
