// What `bench train` makes of the steps that it timed.
#include "bench/training/training_bench.h"

#include <gtest/gtest.h>

#include "data/synthetic.h"
#include "train/setup/run_setup.h"

namespace ringlet::bench {
namespace {

/// Steps of 5 ms on a device that runs ahead of the host: what the host sees of each, and whether
/// it waited for its end.
std::vector<train::StepReport> steps_of(
    std::initializer_list<std::pair<double, bool>> milliseconds) {
  std::vector<train::StepReport> steps;
  for (const auto& [time, awaited] : milliseconds) {
    train::StepReport step;
    step.seconds = 1e-3 * time;
    step.awaited = awaited;
    steps.push_back(step);
  }
  return steps;
}

TEST(StepSeconds, AreOfSteps) {
  const StepSeconds seconds =
      step_seconds(steps_of({{5, true}, {7, true}, {6, true}, {5, true}, {27, true}}));
  EXPECT_DOUBLE_EQ(seconds.mean, 10e-3);  // the stall too
  EXPECT_DOUBLE_EQ(seconds.median, 6e-3);
  EXPECT_DOUBLE_EQ(seconds.fastest, 5e-3);
}

TEST(StepSeconds, HaveAMedianBetweenTheTwoInTheMiddle) {
  EXPECT_DOUBLE_EQ(step_seconds(steps_of({{5, true}, {9, true}, {6, true}, {7, true}})).median,
                   6.5e-3);
}

TEST(StepSeconds, OfStepsThatEndTogetherAreInTheMeanAlone) {
  // The host was kept away for three steps. It then hears of all three at once, and waits for the
  // fourth from then on.
  const StepSeconds seconds = step_seconds(steps_of(
      {{5, true}, {5.5, true}, {14, false}, {0.1, false}, {0.1, false}, {0.8, true}, {5, true}}));
  EXPECT_DOUBLE_EQ(seconds.fastest, 5e-3);
  EXPECT_DOUBLE_EQ(seconds.median, 5e-3);
  EXPECT_NEAR(seconds.mean, 30.5e-3 / 7, 1e-12);
}

TEST(StepSeconds, OfAHostThatNeverWaitsAreTheMean) {
  const StepSeconds seconds = step_seconds(steps_of({{8, false}, {1, false}, {6, false}}));
  EXPECT_DOUBLE_EQ(seconds.mean, 5e-3);
  EXPECT_DOUBLE_EQ(seconds.median, 5e-3);
  EXPECT_DOUBLE_EQ(seconds.fastest, 5e-3);
}

TEST(TrainingSpeed, HasAllTimeInItsSamplesASecond) {
  train::TrainOptions options{.recipe = train::default_recipe("mlp")};
  options.recipe.batch_size = 48;  // the epoch's last step has 32
  options.recipe.epochs = 100;
  const data::Splits data = data::make_synthetic({.train = 80, .test = 20});
  const TrainingSpeed speed = measure_training(train::make_run_setup(options, data, 1), 2, 4);
  EXPECT_NEAR(speed.samples_per_second * speed.step.mean, 40, 1e-6);
  EXPECT_LE(speed.step.fastest, speed.step.median);
  EXPECT_LE(speed.step.fastest, speed.step.mean);
  EXPECT_GT(speed.step.fastest, 0);
}

TEST(WhyNotOfSteps, IsWhatTheWorstReplicaWaited) {
  const Interference ranks[] = {{.seconds = 10, .waited = 0.9, .switches = 90},
                                {.seconds = 10, .waited = 2.1, .switches = 300}};
  EXPECT_EQ(why_not(ranks, false), "other work had a replica's processor for 21 % of the time");
  EXPECT_EQ(why_not(ranks, true), "");  // they wait for each other
  EXPECT_EQ(why_not(std::span(ranks).first(1), false), "");
}

TEST(TrainingSpeed, SaysWhatEachRoundTook) {
  train::TrainOptions options{.recipe = train::default_recipe("mlp")};
  options.recipe.batch_size = 48;
  options.recipe.epochs = 100;
  const data::Splits data = data::make_synthetic({.train = 96, .test = 20});
  for (const auto& [steps, rounds] : {std::pair(3, 3), {25, 10}}) {
    const TrainingSpeed speed = measure_training(train::make_run_setup(options, data, 1), 1, steps);
    ASSERT_EQ(std::ssize(speed.rounds), rounds);
    double seconds = 0, forward = 0;
    for (int i = 0; i < rounds; ++i) {
      const SpeedRound& round = speed.rounds[static_cast<std::size_t>(i)];
      const int of_round = (i + 1) * steps / rounds - i * steps / rounds;
      seconds += of_round * 48 / round.samples_per_second;
      forward += of_round * round.phases.forward;
    }
    EXPECT_NEAR(seconds, steps * speed.step.mean, 1e-9);
    EXPECT_NEAR(forward, steps * speed.phases.forward, 1e-9);
  }
}

}  // namespace
}  // namespace ringlet::bench
