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

void expect_as_predicted(const Strategy& strategy, const Network& network, std::int64_t count) {
  if (!why_not_recorded(strategy, network).empty()) return;
  const double played = seconds_of(record(strategy.make, network, {.count = count}), network);
  const auto bytes = static_cast<double>(4 * count);
  const double expected = predicted(strategy, network, bytes, network.machines());
  EXPECT_NEAR(played, expected, kNear * expected)
      << strategy.name << " of " << 4 * count << " bytes on " << network.ranks << " ranks, "
      << network.machines() << " machines";
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
TEST(PlayOf4096Ranks, TakesWhatEachStrategySaysInLittleTime) {
  constexpr std::int64_t kCount = 504 * 256;
  constexpr double kMostSeconds = 30, kMostOfRing = 10;  // of a processor
  const Strategies strategies;
  for (const Strategy& strategy : strategies.all()) {
    const std::clock_t begin = std::clock();
    expect_as_predicted(strategy, one_machine(4096, kNetwork), kCount);
    const double seconds = static_cast<double>(std::clock() - begin) / CLOCKS_PER_SEC;
    EXPECT_LT(seconds, strategy.name == std::string("ring") ? kMostOfRing : kMostSeconds)
        << strategy.name;
    // Without level_costs all of it counts as between machines, as on 8 of 8.
    if (strategy.level_costs == nullptr) continue;
    expect_as_predicted(strategy, equal_machines(512, 8, kNetwork, kFast), kCount);
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
