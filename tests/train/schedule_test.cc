// The schedules against PyTorch's tables.
#include "train/optimizers/schedule.h"

#include <gtest/gtest.h>

#include <cmath>
#include <fstream>
#include <nlohmann/json.hpp>

#include "kernels/error.h"
#include "tests/support/files.h"
#include "tests/support/testdata.h"

namespace ringlet::train {
namespace {

constexpr double kTolerance = 1e-9;  // relative

nlohmann::json tables() {
  std::ifstream file(testing::testdata("oracle/one_cycle.json"));
  return nlohmann::json::parse(file);
}

TEST(Schedule, OneCycleEqualsPyTorchs) {
  int compared = 0;
  for (const auto& table : tables()) {
    const Schedule schedule{.kind = ScheduleKind::one_cycle,
                            .lr = table.at("max_lr"),
                            .momentum = 0.9,
                            .cycle_momentum = table.at("cycle_momentum"),
                            .planned_steps = table.at("total_steps")};
    for (std::size_t i = 0; i < table.at("steps").size(); ++i) {
      const std::int64_t step = table.at("steps")[i];
      const double lr = table.at("lr")[i], momentum = table.at("momentum")[i];
      const Rates rates = schedule.at(step);
      EXPECT_NEAR(rates.lr, lr, kTolerance * lr) << "step " << step;
      EXPECT_NEAR(rates.momentum, momentum, kTolerance * momentum) << "step " << step;
      ++compared;
    }
  }
  EXPECT_EQ(compared, 4 * 50 + 4 * 142);
}

TEST(Schedule, ConstantNeverChanges) {
  const Schedule schedule{.lr = 0.2, .momentum = 0.9, .planned_steps = 10};
  for (const std::int64_t step : {0, 1, 9}) {
    EXPECT_EQ(schedule.at(step).lr, 0.2);
    EXPECT_EQ(schedule.at(step).momentum, 0.9);
  }
}

TEST(Schedule, TheShortestCyclesHaveFiniteRates) {
  for (std::int64_t planned = 1; planned <= 8; ++planned) {
    const Schedule schedule{
        .kind = ScheduleKind::one_cycle, .lr = 0.1, .momentum = 0.9, .planned_steps = planned};
    for (std::int64_t step = 0; step < planned; ++step) {
      EXPECT_TRUE(std::isfinite(schedule.at(step).lr)) << step << " of " << planned;
      EXPECT_GT(schedule.at(step).lr, 0) << step << " of " << planned;
      EXPECT_LE(schedule.at(step).lr, 0.1) << step << " of " << planned;
    }
  }
}

TEST(Schedule, NamesGoThereAndBack) {
  for (const auto kind : {ScheduleKind::constant, ScheduleKind::one_cycle}) {
    EXPECT_EQ(parse_schedule(name_of(kind)), kind);
  }
  EXPECT_TRUE(testing::says(testing::message_of<ContractError>([] { parse_schedule("cosine"); }),
                            {"'cosine'", "constant", "one-cycle"}));
}

}  // namespace
}  // namespace ringlet::train
