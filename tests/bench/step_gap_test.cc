// What `bench train --why` makes of the rounds that it measured.
#include "bench/training/step_gap.h"

#include <gtest/gtest.h>

#include "data/synthetic.h"

namespace ringlet::bench {
namespace {

double sum_of_parts(const StepGap& gap) {
  return gap.smaller_share + gap.disturbed + gap.waiting + gap.sums + gap.does_not_shrink;
}

// In each step one rank comes last, waits 2 for the sum, and has kept the other one waiting.
TEST(StepGap, TellsWaitingForTheSlowestFromTheSum) {
  const std::vector<RankStep> first = {{.step = 20, .compute = 10, .sync = 7},
                                       {.step = 20, .compute = 15, .sync = 2}};
  const std::vector<RankStep> second = {{.step = 20, .compute = 15, .sync = 2},
                                        {.step = 20, .compute = 12, .sync = 5}};
  const std::vector<RankStep> ranks[] = {first, second};
  const std::vector<StepParts> parts = parts_of(ranks);
  ASSERT_EQ(parts.size(), 2U);
  EXPECT_DOUBLE_EQ(parts[0].sums, 2);
  EXPECT_DOUBLE_EQ(parts[0].waiting, (5 + 0) / 2.0);
  EXPECT_DOUBLE_EQ(parts[0].compute, (10 + 15) / 2.0);
  EXPECT_DOUBLE_EQ(parts[0].rest, 3);
  EXPECT_DOUBLE_EQ(parts[0].step(), 20);
  EXPECT_DOUBLE_EQ(parts[1].waiting, (0 + 3) / 2.0);
  EXPECT_DOUBLE_EQ(parts[1].compute, (15 + 12) / 2.0);
}

TEST(StepGap, PartsAddUpToIt) {
  const StepParts alone{.compute = 16, .rest = 4}, share{.compute = 9, .rest = 4};
  const StepParts together{.compute = 11, .waiting = 3, .sums = 2, .rest = 5};
  const StepGap gap = gap_between(alone, share, together, 2);
  EXPECT_DOUBLE_EQ(gap.ideal, 10);
  EXPECT_DOUBLE_EQ(gap.smaller_share, 1);
  EXPECT_DOUBLE_EQ(gap.disturbed, 2);
  EXPECT_DOUBLE_EQ(gap.waiting, 3);
  EXPECT_DOUBLE_EQ(gap.sums, 2);
  EXPECT_DOUBLE_EQ(gap.does_not_shrink, 3);
  EXPECT_DOUBLE_EQ(gap.gap(), 11);
  EXPECT_DOUBLE_EQ(sum_of_parts(gap), gap.gap());
}

// An uneven batch: of 7 samples one rank has 3.
TEST(StepGap, IsMeasuredInTurns) {
  train::TrainOptions options{.recipe = train::default_recipe("mlp")};
  options.recipe.epochs = 1000;
  const data::Splits data = data::make_synthetic({.train = 80, .test = 20});
  const auto setup = [&](int replicas, std::int64_t batch_size) {
    train::TrainOptions made = options;
    made.recipe.batch_size = batch_size;
    made.execution.devices.assign(static_cast<std::size_t>(replicas), {DeviceKind::cpu, 0});
    return train::make_run_setup(made, data, replicas);
  };
  const StepGap gap = measure_step_gap(setup, 2, 7, 0);
  EXPECT_GE(gap.steps, 4 * 2);
  EXPECT_GT(gap.ideal, 0);
  EXPECT_GT(gap.step, 0);
  EXPECT_GT(gap.sums, 0);
  EXPECT_GE(gap.waiting, 0);
  EXPECT_GE(gap.unrest, 1);
  EXPECT_NEAR(sum_of_parts(gap), gap.gap(), 1e-9);
}

}  // namespace
}  // namespace ringlet::bench
