// The schedules against PyTorch's tables.
#include "train/recipe/schedule.h"

#include <gtest/gtest.h>

#include <cmath>
#include <nlohmann/json.hpp>

#include "base/error.h"
#include "base/files/json_text.h"
#include "tests/support/files.h"
#include "tests/support/testdata.h"
#include "train/files/recipe_json.h"
#include "train/recipe/options.h"
#include "train/recipe/recipe_options.h"

namespace ringlet::train {
namespace {

constexpr double kTolerance = 1e-9;  // relative

nlohmann::json tables() {
  return parse_json(testing::read_file(testing::testdata("oracle/one_cycle.json")));
}

TEST(Schedule, OneCycleEqualsPyTorchs) {
  int compared = 0;
  for (const auto& table : tables()) {
    const Schedule schedule{
        {.lr = table.at("max_lr"), .momentum = 0.9},
        {.schedule = ScheduleKind::one_cycle, .cycle_momentum = table.at("cycle_momentum")},
        table.at("total_steps")};
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
  const Schedule schedule{{.lr = 0.2, .momentum = 0.9}, {}, 10};
  for (const std::int64_t step : {0, 1, 9}) {
    EXPECT_EQ(schedule.at(step).lr, 0.2);
    EXPECT_EQ(schedule.at(step).momentum, 0.9);
  }
}

TEST(Schedule, TheShortestCyclesHaveFiniteRates) {
  for (std::int64_t planned = 1; planned <= 8; ++planned) {
    const Schedule schedule{
        {.lr = 0.1, .momentum = 0.9}, {.schedule = ScheduleKind::one_cycle}, planned};
    for (std::int64_t step = 0; step < planned; ++step) {
      EXPECT_TRUE(std::isfinite(schedule.at(step).lr)) << step << " of " << planned;
      EXPECT_GT(schedule.at(step).lr, 0) << step << " of " << planned;
      EXPECT_LE(schedule.at(step).lr, 0.1) << step << " of " << planned;
    }
  }
}

TEST(Schedule, NamesGoThereAndBack) {
  for (const std::string& name : schedule_names()) EXPECT_EQ(name_of(parse_schedule(name)), name);
  EXPECT_EQ(parse_schedule("cosine"), ScheduleKind::cosine);
  EXPECT_EQ(parse_schedule("one-cycle"), ScheduleKind::one_cycle);
  EXPECT_TRUE(testing::says(testing::message_of<ContractError>([] { parse_schedule("cosinus"); }),
                            {"'cosinus'", "constant", "one-cycle"}));
}

/// What PyTorch's schedulers give when they are stepped, warm-up by SequentialLR.
TEST(Schedule, ClosedFormsEqualPyTorchsSteps) {
  const auto runs = parse_json(testing::read_file(testing::testdata("oracle/schedules.json")));
  int compared = 0;
  for (const auto& run : runs) {
    SCOPED_TRACE(run.at("recipe").dump());
    nlohmann::json json = all_fields({});
    json.update(run.at("recipe"));
    json["epochs"] = run.at("epochs");
    const Recipe recipe = recipe_from_json(json, "the table");
    EXPECT_NO_THROW(check_schedule(recipe, recipe, recipe.epochs));
    const std::int64_t per_epoch = run.at("steps_per_epoch");
    const Schedule schedule{static_cast<const RateSpec&>(recipe),
                            static_cast<const ScheduleSpec&>(recipe), per_epoch * recipe.epochs,
                            per_epoch};
    ASSERT_EQ(schedule.planned_steps, static_cast<std::int64_t>(run.at("rates").size()));
    for (std::int64_t step = 0; step < schedule.planned_steps; ++step, ++compared) {
      const double rate = run.at("rates")[static_cast<std::size_t>(step)];
      EXPECT_NEAR(schedule.at(step).lr, rate, kTolerance * rate + 1e-15) << "step " << step;
      EXPECT_EQ(schedule.at(step).step, step);
    }
  }
  EXPECT_EQ(compared, 35 + 32 + 40 + 40 + 36 + 40 + 24 + 40);
}

TEST(Schedule, StaysAtTheEndOfItsFallBehindThePlannedSteps) {
  const Schedule schedule{{.lr = 0.5}, {.schedule = ScheduleKind::cosine, .min_lr = 0.125}, 10};
  EXPECT_DOUBLE_EQ(schedule.at(0).lr, 0.5);
  EXPECT_DOUBLE_EQ(schedule.at(5).lr, 0.3125);
  EXPECT_DOUBLE_EQ(schedule.at(10).lr, 0.125);
  EXPECT_DOUBLE_EQ(schedule.at(15).lr, 0.125) << "PyTorch's would rise again";
}

TEST(Schedule, RefusesWhatItDoesNotRead) {
  const auto message = [](const RateSpec& rates, const ScheduleSpec& spec, int epochs = 5) {
    Recipe recipe;
    static_cast<RateSpec&>(recipe) = rates;
    static_cast<ScheduleSpec&>(recipe) = spec;
    return testing::message_of<ContractError>([&] {
      check_belongings(recipe, true, false);
      check_schedule(rates, spec, epochs);
    });
  };
  EXPECT_NO_THROW(check_schedule({}, {}, 1));
  const auto one_cycle = ScheduleKind::one_cycle, cosine = ScheduleKind::cosine;
  EXPECT_TRUE(testing::says(message({}, {.schedule = one_cycle, .warmup_epochs = 1}),
                            {"--warmup-epochs", "by itself"}));
  EXPECT_TRUE(testing::says(message({}, {.schedule = one_cycle, .warmup_start = 0.5}),
                            {"--warmup-start: one-cycle warms up by itself"}));
  EXPECT_TRUE(testing::says(message({}, {.schedule = cosine, .warmup_epochs = 3}, 3),
                            {"--warmup-epochs", "as long as the run"}));
  EXPECT_TRUE(
      testing::says(message({}, {.warmup_start = 0.5}), {"--warmup-start", "--warmup-epochs"}));
  EXPECT_TRUE(testing::says(message({}, {.schedule = cosine, .gamma = 0.5}),
                            {"--gamma", "is for --schedule step; leave it out"}));
  EXPECT_TRUE(testing::says(message({}, {.step_epochs = 5}), {"--step-epochs", "--schedule step"}));
  EXPECT_TRUE(testing::says(message({}, {.power = 2}), {"--power", "polynomial"}));
  EXPECT_TRUE(testing::says(message({}, {.min_lr = 1e-3}),
                            {"--min-lr", "is for --schedule cosine and polynomial; leave it out"}));
  EXPECT_TRUE(testing::says(message({.lr = 0.1}, {.schedule = cosine, .min_lr = 0.2}),
                            {"--min-lr", "above --lr"}));
  EXPECT_TRUE(testing::says(message({}, {.cycle_momentum = true}),
                            {"--cycle-momentum", "only --schedule one-cycle has a cycle"}));
}

TEST(Schedule, OfAnOlderRunMayCycleMomentumWithoutACycle) {
  Recipe recipe;
  recipe.cycle_momentum = true;
  EXPECT_NO_THROW(check_belongings(recipe, /*begins=*/false, false));
}

}  // namespace
}  // namespace ringlet::train
