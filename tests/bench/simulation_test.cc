// Simulated all-reduces: how their numbers are written, what they cost, and the rows.
#include "bench/simulation/simulation.h"

#include <gtest/gtest.h>

#include <cmath>
#include <nlohmann/json.hpp>
#include <string>
#include <string_view>
#include <vector>

#include "bench/simulation/training_step.h"
#include "bench/simulation/ways.h"
#include "comm/all_reduce/ring.h"
#include "comm/schedule/play.h"
#include "comm/schedule/recording.h"

namespace ringlet::bench {
namespace {

constexpr comm::CostModel kModel{5e-6, 1 / 50e9, 1 / 100e9};

TEST(Quantities, AreReadAsTheyAreWritten) {
  EXPECT_DOUBLE_EQ(*parse_seconds("5us"), 5e-6);
  EXPECT_DOUBLE_EQ(*parse_seconds("0.5ms"), 0.5e-3);
  EXPECT_DOUBLE_EQ(*parse_seconds("300ns"), 300e-9);
  EXPECT_DOUBLE_EQ(*parse_seconds("2s"), 2);
  EXPECT_DOUBLE_EQ(*parse_rate("50G"), 50e9);
  EXPECT_DOUBLE_EQ(*parse_rate("0.2T"), 200e9);
  EXPECT_EQ(seconds_text(4.2e-5), "42 us");
  EXPECT_EQ(seconds_text(9.9999e-4), "1 ms");
  EXPECT_EQ(rate_text(25e6), "25M");
  EXPECT_EQ(parse_layout("512x8")->ranks(), 4096);
  EXPECT_EQ(parse_slow("17:3x")->rank, 17);
  EXPECT_EQ(parse_slow("17:1.5x")->factor, 1.5);
}

TEST(Quantities, AreNothingElse) {
  for (const char* text : {"5", "0us", "-5us", "+5us", "infus", "nan", "", "us", "5 us", "5usx",
                           "1e9s", "1e400us", "1e-9ns"}) {
    EXPECT_FALSE(parse_seconds(text)) << text;
  }
  for (const char* text : {"0", "0G", "50", "-1G", "infG", "1e9T", "0.1K", "50g", "50GG"}) {
    EXPECT_FALSE(parse_rate(text)) << text;
  }
  for (const char* text : {"3x", "x3", "3", "0x8", "8x0", "1x1", "4097x1", "65536x65536", "2x2x2",
                           "-2x2", "99999999999x1"}) {
    EXPECT_FALSE(parse_layout(text)) << text;
  }
  for (const char* text : {"1:3", "1:x", ":3x", "1:0.5x", "-1:3x", "1:infx", "1:1e9x", "1"}) {
    EXPECT_FALSE(parse_slow(text)) << text;
  }
}

/// A strategy of somebody else's.
class OtherRing final : public comm::AllReduce {
 public:
  static constexpr const char* kName = "other-ring";
  static constexpr comm::Needs kNeeds = comm::Needs::nothing;
  static comm::PathCost path_cost(int ranks, double bytes) {
    return comm::RingAllReduce::path_cost(ranks, bytes);
  }
  explicit OtherRing(comm::Transport& transport) : AllReduce(transport), ring_(transport) {}
  const char* name() const override { return kName; }
  void run(Stream& stream, View data, ReduceOp op) override { ring_.run(stream, data, op); }
  std::optional<std::int64_t> elements_sent(std::int64_t count) const override {
    return ring_.elements_sent(count);
  }

 private:
  comm::RingAllReduce ring_;
};

const Simulated& row_of(const std::vector<Simulated>& rows, std::string_view strategy) {
  return *std::find_if(rows.begin(), rows.end(),
                       [&](const Simulated& row) { return row.strategy == strategy; });
}

TEST(Simulation, HasARowForEachStrategyOfTheRegistry) {
  comm::Strategies strategies;
  strategies.add<OtherRing>();
  const auto rows = simulate({.strategies = strategies.all(), .layouts = {{1, 8}}, .sizes = {8195}},
                             Costs({kModel, kModel}));
  ASSERT_EQ(rows.size(), strategies.all().size());
  for (const Simulated& row : rows) {
    const bool of_library = comm::needs_engine(strategies.needs_of(row.strategy));
    EXPECT_EQ(!row.why_not.empty(), of_library) << row.strategy;
    EXPECT_EQ(row.bytes, 8192) << "whole elements";
    EXPECT_NEAR(row.seconds, row.model_seconds, 0.01 * row.seconds);
  }
  const Simulated& ring = row_of(rows, "other-ring");
  EXPECT_EQ(ring.steps, 14);
  EXPECT_EQ(ring.messages, 112);
  EXPECT_EQ(ring.busiest_bytes, 14 * 1024);
  EXPECT_DOUBLE_EQ(ring.model_seconds, 14 * (5e-6 + 1024 / 50e9) + 7 * 1024 / 100e9);
}

TEST(Simulation, KnowsMachinesAndTheirLinks) {
  const comm::CostModel near{1e-6, 1 / 200e9, 0};
  const auto rows = simulate(
      {.strategies = comm::Strategies().all(), .layouts = {{8, 8}, {1, 8}}, .sizes = {1 << 20}},
      Costs({kModel, near}));
  EXPECT_LT(row_of(rows, "two-level").seconds, 0.5 * row_of(rows, "ring").seconds);
  EXPECT_NE(row_of(rows, "two-shot").why_not, "") << "no memory is shared between machines";
  const auto one = std::find_if(rows.begin(), rows.end(), [](const Simulated& row) {
    return row.layout.machines == 1 && row.strategy == "ring";
  });
  EXPECT_NEAR(one->seconds, 14 * (1e-6 + (1 << 17) / 200e9), 1e-9) << "inside costs alone";
}

TEST(Simulation, LetsASlowRankHoldUpTheOthersAndNotTheFormula) {
  const comm::Strategy ring = *comm::Strategies().find("ring");
  const Costs costs({{5e-6, 1 / 50e9, 0}, {5e-6, 1 / 50e9, 0}});
  const auto usual = simulate({{ring}, {{1, 8}}, {8192}, {}}, costs);
  const auto slow = simulate({{ring}, {{1, 8}}, {8192}, {{3, 2.5}}}, costs);
  EXPECT_NEAR(slow[0].seconds, 2.5 * usual[0].seconds, 1e-9);
  EXPECT_EQ(slow[0].model_seconds, usual[0].model_seconds);
  const comm::Strategy two_shot = *comm::Strategies().find("two-shot");
  const auto late = simulate({{two_shot}, {{1, 8}}, {32}, {{3, 10}}}, costs);
  EXPECT_GT(late[0].seconds, 2 * 10 * 5e-6) << "it is late for both meetings";
}

/// A row of the ring that takes what its formula says.
Measurement measured_ring(int ranks, int machines, std::int64_t bytes) {
  Measurement row;
  row.strategy = "ring";
  row.ranks = ranks;
  row.machines = machines;
  row.bytes = bytes;
  row.count = bytes / 4;
  const auto cost = comm::RingAllReduce::path_cost(ranks, static_cast<double>(bytes));
  row.median_us = 1e6 * seconds_of(cost, {5e-6 * ranks, 1 / 50e9, 0});
  return row;
}

std::vector<Measurement> measured_rings() {
  std::vector<Measurement> rows;
  for (const std::int64_t bytes : {4096, 1 << 20}) {
    for (const int ranks : {2, 16}) rows.push_back(measured_ring(ranks, 1, bytes));
  }
  return rows;
}

TEST(Costs, OfMeasurementsAreThoseOfTheNearestRanks) {
  const Costs costs(measured_rings(), "rows.json");
  for (const auto& [ranks, latency] : {std::pair{2, 10e-6}, {4, 10e-6}, {8, 80e-6}, {64, 80e-6}}) {
    const auto found = costs.of("ring", {1, ranks});
    ASSERT_TRUE(found);
    EXPECT_NEAR(found->inside.latency_s, latency, 0.001 * latency) << ranks;
    EXPECT_NEAR(found->inside.seconds_per_byte, 1 / 50e9, 0.001 / 50e9) << ranks;
  }
  EXPECT_FALSE(costs.of("tree", {1, 2}));
  EXPECT_FALSE(costs.of("ring", {2, 2}));
  EXPECT_LT(*costs.worst_error("ring", {1, 2}), 0.001);
  const comm::Strategy tree = *comm::Strategies().find("tree");
  EXPECT_EQ(simulate({{tree}, {{1, 2}}, {64}, {}}, costs)[0].why_not,
            "rows.json has no costs of tree on one machine");
}

TEST(Costs, AreOfTheQuickestSumsOfF32InPlace) {
  std::vector<Measurement> rows;
  const auto add = [&](double times, const auto& change) {
    for (Measurement row : measured_rings()) {
      row.median_us *= times;
      change(row);
      rows.push_back(row);
    }
  };
  add(0.1, [](Measurement& row) { row.type = "bf16"; });
  add(0.1, [](Measurement& row) { row.op = "max"; });
  add(0.1, [](Measurement& row) { row.in_place = false; });
  add(3, [](Measurement& row) { row.ranks_as = "processes"; });
  add(1, [](Measurement&) {});
  const Costs costs(rows, "rows.json");
  EXPECT_NEAR(costs.of("ring", {1, 2})->inside.latency_s, 10e-6, 1e-8);
  const comm::Strategy ring = *comm::Strategies().find("ring");
  auto simulated = simulate({{ring}, {{1, 2}}, {4096}, {}}, costs);
  EXPECT_EQ(set_measured(simulated, rows, 8), 1);
  EXPECT_NEAR(simulated[0].error(), 0, 0.001);
}

TEST(Costs, OfMeasurementsOnMachinesAreThoseOfTheLink) {
  const Costs costs({measured_ring(4, 4, 4096), measured_ring(4, 4, 1 << 20)}, "rows.json");
  const auto found = costs.of("ring", {8, 2});
  ASSERT_TRUE(found);
  EXPECT_NEAR(found->between.latency_s, 20e-6, 1e-8);
  EXPECT_EQ(found->inside.latency_s, 0);
  EXPECT_FALSE(costs.of("ring", {1, 8}));
}

TEST(Simulation, IsSetBesideWhatWasMeasured) {
  const std::vector<Measurement> measured = measured_rings();
  const comm::Strategy ring = *comm::Strategies().find("ring");
  auto rows = simulate({{ring}, {{1, 2}, {1, 16}}, {4096, 8192}, {}}, Costs(measured, "rows.json"));
  EXPECT_EQ(set_measured(rows, measured, 8), 2);
  EXPECT_NEAR(rows[0].error(), 0, 0.001);
  EXPECT_FALSE(rows[0].took_turns);
  EXPECT_FALSE(rows[1].measured);
  EXPECT_TRUE(rows[2].took_turns) << "16 ranks on 8 processors";
  const nlohmann::json json = to_json(rows).at("rows");
  EXPECT_NEAR(json[0].at("measured_seconds").get<double>(), 1e-6 * measured[0].median_us, 1e-12);
  EXPECT_TRUE(json[2].at("took_turns").get<bool>());
  EXPECT_FALSE(json[1].contains("error"));
  rows[0].measured->median_us *= 2;
  EXPECT_NEAR(rows[0].error(), -0.5, 0.001);
  std::vector<Measurement> wrong = measured;
  for (Measurement& row : wrong) row.wrong = 1;
  EXPECT_EQ(set_measured(rows, wrong, 8), 0);
}

TEST(Simulation, HasATableForEachLayout) {
  const comm::Strategy ring = *comm::Strategies().find("ring");
  const Costs costs({kModel, kModel});
  const std::string text = to_text(simulate({{ring}, {{1, 4}, {2, 2}}, {4096}, {}}, costs), costs);
  EXPECT_NE(text.find("4 ranks on one machine"), std::string::npos) << text;
  EXPECT_NE(text.find("4 ranks, 2 on each of 2 machines"), std::string::npos) << text;
}

TEST(Simulation, PlaysRanksThatBeginLate) {
  const comm::Network network = comm::one_machine(2, {1, 1, 0});
  const auto ring = record(comm::Strategies().find("ring")->make, network, {.count = 2});
  EXPECT_EQ(play(ring, network), (std::vector<double>{10, 10}));
  EXPECT_EQ(play(ring, network, {}, {7, 0}), (std::vector<double>{17, 17}));
}

const StepSpec kStep{.model = "lenet-d2l", .batch_size = 256, .compute_s = 12e-3, .bucket_kb = 64};

TEST(SimulatedStep, FillsItsBucketsAlongBackward) {
  const std::vector<StepSum> sums = step_plan(kStep, true).sums;
  ASSERT_GT(sums.size(), 2u);
  std::int64_t bytes = 0;
  double ready = 1.0 / 3;  // forward is a third of the work, but for the first layer
  for (const StepSum& sum : sums) {
    bytes += sum.bytes;
    EXPECT_GT(sum.ready, ready);
    ready = sum.ready;
  }
  EXPECT_DOUBLE_EQ(ready, 1) << "the first layer's gradients come last";
  EXPECT_GT(bytes, 4 * 129'068 / 2);
  StepSpec one = kStep;
  one.bucket_kb = 1 << 20;
  EXPECT_EQ(step_plan(one, true).sums.size(), 1u);
  EXPECT_EQ(step_plan(one, true).sums[0].bytes, bytes);
}

TEST(SimulatedStep, HidesSumsUnderBackward) {
  const comm::Strategy ring = *comm::Strategies().find("ring");
  const comm::CostModel ethernet{100e-6, 1 / 125e6, 0};
  const Simulation two{{ring}, {{2, 1}}, {}, {}};
  const auto step = simulate_step(two, kStep, Costs({ethernet, ethernet}))[0];
  EXPECT_DOUBLE_EQ(step.compute_s, 6e-3) << "half of the batch";
  EXPECT_NEAR(step.unoverlapped, step.compute_s + step.sums_s, 1e-9);
  EXPECT_LT(step.seconds, step.unoverlapped);
  EXPECT_GT(step.hidden(), 0.1);
  EXPECT_LT(step.hidden(), 1);
  EXPECT_NEAR(step.efficiency, 6e-3 / step.seconds, 1e-9);
  StepSpec one = kStep;
  one.bucket_kb = 1 << 20;  // is full at the end of backward
  EXPECT_NEAR(simulate_step(two, one, Costs({ethernet, ethernet}))[0].hidden(), 0, 1e-9);
  const comm::CostModel quick{1e-9, 1e-12, 0};
  EXPECT_NEAR(simulate_step(two, kStep, Costs({quick, quick}))[0].efficiency, 1, 0.001);
}

TEST(SimulatedStep, WaitsForASlowRank) {
  const comm::Strategy ring = *comm::Strategies().find("ring");
  const comm::CostModel quick{1e-9, 1e-12, 0};
  const auto step =
      simulate_step({{ring}, {{1, 4}}, {}, {{2, 3}}}, kStep, Costs({quick, quick}))[0];
  EXPECT_NEAR(step.seconds, 9e-3, 1e-5) << "three times a quarter";
  EXPECT_EQ(to_json(std::vector{step})[0].at("buckets"), step.buckets);
}

TEST(Simulation, WritesTheKeysOfItsRows) {
  const auto rows =
      simulate({comm::Strategies().all(), {{1, 2}}, {64}, {}}, Costs({kModel, kModel}));
  const nlohmann::json json = to_json(rows);
  for (const nlohmann::json& row : json.at("rows")) {
    for (const char* key : {"strategy", "ranks", "machines", "bytes"}) {
      EXPECT_TRUE(row.contains(key)) << row;
    }
    for (const char* key : {"seconds", "model_seconds", "steps", "messages", "busiest_bytes"}) {
      EXPECT_NE(row.contains(key), row.contains("why_not")) << row;
    }
  }
}

double seconds_of(const std::vector<Way>& ways, const LinkCosts& costs, double bytes) {
  double best = INFINITY;
  for (Way way : ways) {
    for (comm::PathCost* path : {&way.between, &way.inside}) {
      path->bytes *= bytes;
      path->reduced_bytes *= bytes;
    }
    best = std::min(best, comm::seconds_of(way.between, costs.between) +
                              comm::seconds_of(way.inside, costs.inside));
  }
  return best;
}

TEST(Ways, AreTheFormulasForAnyLinkAndBytes) {
  const comm::CostModel near{1e-6, 1 / 200e9, 1 / 100e9};
  const comm::Strategies known;
  for (const comm::Strategy& strategy : known.all()) {
    if (comm::needs_engine(strategy.needs)) {
      EXPECT_TRUE(ways_of(strategy, {1, 2}).empty()) << strategy.name;
      continue;
    }
    for (const Layout& layout : {Layout{1, 2}, {1, 7}, {1, 64}, {2, 3}, {8, 8}, {512, 8}}) {
      const std::vector<Way> ways = ways_of(strategy, layout);
      if (strategy.needs == comm::Needs::peer_access && layout.machines > 1) {
        EXPECT_TRUE(ways.empty());
        continue;
      }
      for (const comm::CostModel& link : {kModel, comm::kEthernetCosts}) {
        for (const double bytes : {256., 65536., 16777216.}) {
          const LinkCosts costs{link, near};
          const double model = model_seconds(strategy, network_of(layout, costs), bytes);
          // What goes several ways changes them at powers of two.
          const double near_enough = ways.size() > 1 ? 0.05 : 1e-9;
          EXPECT_NEAR(seconds_of(ways, costs, bytes), model, near_enough * model)
              << strategy.name << " on " << layout.machines << " x " << layout.each;
        }
      }
    }
  }
  EXPECT_GT(ways_of(*comm::Strategies().find("two-level"), {8, 8}).size(), 1u);
}

TEST(Ways, AreShownForLayoutsUpTo4096Ranks) {
  const auto one = layouts_like({1, 8}, {{1, 37}, {2, 4}});
  EXPECT_EQ(one.front().ranks(), 2);
  EXPECT_EQ(one.back().ranks(), 4096);
  const auto has = [&](int ranks) {
    return std::count_if(one.begin(), one.end(),
                         [&](const Layout& layout) { return layout.ranks() == ranks; }) == 1;
  };
  for (const int ranks : {3, 31, 37, 64, 128, 1024, 2048}) EXPECT_TRUE(has(ranks)) << ranks;
  EXPECT_LT(one.size(), 100u);
  const auto several = layouts_like({4, 6}, {});
  EXPECT_EQ(several.front().machines, 1);
  EXPECT_EQ(several.back().ranks(), 682 * 6);
}

}  // namespace
}  // namespace ringlet::bench
