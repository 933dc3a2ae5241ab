// The gradient's norm that a run reports: that of the gradient which the optimiser took, however it
// was computed, and only to those who ask.
#include <gtest/gtest.h>

#include <cmath>
#include <string>
#include <vector>

#include "tests/train/runs.h"

namespace ringlet::train {
namespace {

class Watcher : public RunListener {
 public:
  bool wants_grad_norm() const override { return true; }
};

constexpr std::int64_t kSamples = 66;
constexpr double kRate = 0.125;

/// Plain descent: a step moves the values by the rate times the gradient.
TrainOptions descent(TrainOptions options) {
  options.recipe.batch_size = kSamples;
  options.recipe.lr = kRate;
  options.recipe.schedule = ScheduleKind::constant;
  options.recipe.momentum = 0;
  options.recipe.nesterov = false;
  options.recipe.weight_decay = 0;
  options.recipe.model = "mlp";
  return options;
}

/// How far one step moved the values of rank 0.
double moved(const RunSetup& setup, const HostState& after) {
  HostState before;
  run_replicas(
      setup.options.execution,
      [&](Device& device, comm::Communicator& communicator) {
        Replica replica(device, setup.replica);
        replica.parameters().initialize(setup.options.recipe.seed);
        if (communicator.rank() == 0) before = download(device, replica.parameters(), {});
      },
      nullptr);
  double squares = 0;
  for (std::size_t i = 0; i < after.values.size(); ++i) {
    for (std::size_t k = 0; k < after.values[i].size(); ++k) {
      const double step =
          static_cast<double>(after.values[i][k]) - static_cast<double>(before.values[i][k]);
      squares += step * step;
    }
  }
  return std::sqrt(squares);
}

struct Case {
  const char* name;
  TrainOptions options;
};
void PrintTo(const Case& c, std::ostream* out) { *out << c.name; }

std::vector<Case> cases() {
  std::vector<Case> all{{"one", plain_options(1)},
                        {"three", plain_options(3)},
                        {"accumulate", plain_options(2)},
                        {"exact", exact_options(2)}};
  all[2].options.recipe.accumulate = 3;
  return all;
}

class GradNorm : public ::testing::TestWithParam<Case> {};

TEST_P(GradNorm, IsThatOfTheGradientWhichTheOptimiserTook) {
  const TrainOptions options = descent(GetParam().options);
  const RunSetup setup = make_run_setup(options, formula_splits(kSamples),
                                        static_cast<int>(options.execution.devices.size()));
  Watcher watcher;
  const Outcome outcome = run(setup, {&watcher});
  ASSERT_EQ(outcome.steps.size(), 1u);
  const double expected = moved(setup, outcome.state) / kRate;
  EXPECT_GT(expected, 0.1);
  EXPECT_NEAR(outcome.steps[0].grad_norm, expected, 1e-4 * expected);
}

INSTANTIATE_TEST_SUITE_P(Ways, GradNorm, ::testing::ValuesIn(cases()),
                         ::testing::PrintToStringParamName());

TEST(GradNormOf, EveryStepIsTheSameWithStepsInFlight) {
  TrainOptions options = descent(plain_options(2));
  RunSetup setup = make_run_setup(options, formula_splits(5 * kSamples), 2);
  Watcher watcher;
  const Outcome expected = run(setup, {&watcher});
  setup.steps_in_flight = 2;
  const Outcome actual = run(setup, {&watcher});
  ASSERT_EQ(actual.steps.size(), 5u);
  for (std::size_t i = 0; i < actual.steps.size(); ++i) {
    EXPECT_EQ(actual.steps[i].grad_norm, expected.steps[i].grad_norm);
    if (i == 0) continue;
    EXPECT_NE(actual.steps[i].grad_norm, actual.steps[i - 1].grad_norm);
  }
}

TEST(GradNormOf, ARunThatNobodyAsksIsNotComputed) {
  const Outcome outcome = run(descent(plain_options(1)), formula_splits(kSamples));
  EXPECT_TRUE(std::isnan(outcome.steps[0].grad_norm));
}

}  // namespace
}  // namespace ringlet::train
