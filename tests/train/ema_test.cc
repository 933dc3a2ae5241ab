// --ema: the average that is tested and kept while training goes on with the weights. That a run
// with it goes on bit for bit, also over stages: resume_test.cc, stages_run_test.cc.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <string_view>
#include <vector>

#include "kernels/cuda_devices.h"
#include "tests/support/files.h"
#include "tests/support/tensors.h"
#include "tests/train/runs.h"
#include "train/files/load_model.h"
#include "train/optimizers/weight_average.h"

namespace ringlet::train {
namespace {

constexpr double kDecay = 0.6;

TrainOptions averaged(TrainOptions options) {
  options.recipe.ema = kDecay;
  return options;
}

using Tensors = std::vector<std::vector<float>>;
using Doubles = std::vector<std::vector<double>>;

Doubles to_doubles(const Tensors& tensors) {
  Doubles doubles;
  for (const auto& tensor : tensors) doubles.emplace_back(tensor.begin(), tensor.end());
  return doubles;
}

/// The formula, as plainly as possible. `t`: steps before this one.
void take_up(Doubles& mean, const Tensors& values, std::int64_t t) {
  const double steps = static_cast<double>(t);
  const double decay = std::min(kDecay, (1 + steps) / (10 + steps));
  for (std::size_t i = 0; i < mean.size(); ++i) {
    for (std::size_t k = 0; k < mean[i].size(); ++k) {
      mean[i][k] = decay * mean[i][k] + (1 - decay) * static_cast<double>(values[i][k]);
    }
  }
}

const Tensors& arena_of(const HostState& state, std::string_view name) {
  const auto arena = std::ranges::find(state.optimizer, name, &HostArena::name);
  EXPECT_NE(arena, state.optimizer.end()) << name;
  return arena->tensors;
}

void expect_near(const Tensors& actual, const Doubles& expected) {
  ASSERT_EQ(actual.size(), expected.size());
  for (std::size_t i = 0; i < actual.size(); ++i) {
    for (std::size_t k = 0; k < actual[i].size(); ++k) {
      ASSERT_NEAR(actual[i][k], expected[i][k], 1e-6) << i << " " << k;
    }
  }
}

/// Steps by hand, and looks at each.
TEST(Ema, FollowsTheFormulaStepByStep) {
  const TrainOptions options = averaged(normed(plain_options(1)));
  const RunSetup setup = make_run_setup(options, formula_splits(5 * 64), 1);
  run_replicas(options.execution, [&](Device& device, comm::Communicator& communicator) {
    TrainLoop loop(setup, device, communicator, {});
    const HostState start = loop.collect();
    Doubles weights = to_doubles(start.values), buffers = to_doubles(start.buffers);
    for (std::int64_t t = 0; t < 4; ++t) {
      ASSERT_TRUE(loop.step());
      const HostState now = loop.collect();
      take_up(weights, now.values, t);
      take_up(buffers, now.buffers, t);
      expect_near(arena_of(now, WeightAverage::kWeights), weights);
      expect_near(arena_of(now, WeightAverage::kBuffers), buffers);
    }
  });
}

TEST(Ema, ChangesNothingThatTrainingDoes) {
  const data::Splits data = formula_splits(4 * 64);
  const Outcome with = run(averaged(normed(plain_options(2))), data);
  const Outcome without = run(normed(plain_options(2)), data);
  EXPECT_EQ(with.losses(), without.losses());
  EXPECT_EQ(with.state.values, without.state.values);
  EXPECT_EQ(with.state.buffers, without.state.buffers);
  EXPECT_NE(with.epochs.back().test.loss, without.epochs.back().test.loss);
}

/// A run that learns nothing tests what the file has.
TEST(Ema, IsWhatIsTestedAndSaved) {
  const testing::TemporaryDirectory folder;
  TrainOptions options = averaged(plain_options(2));
  options.recipe.model = "mlp";
  options.files.out = folder.path();
  const data::Splits data = formula_splits(4 * 64);
  const Outcome outcome = run(options, data);
  for (const char* file : {"model.safetensors", "state/model.safetensors"}) {
    TrainOptions other = plain_options(1);
    other.recipe.model = "mlp";
    other.recipe.lr = 0;
    other.recipe.momentum = 0;
    other.recipe.nesterov = false;
    other.files.init = folder / file;
    const Outcome again = run(other, data);
    EXPECT_EQ(again.epochs.back().test.loss, outcome.epochs.back().test.loss) << file;
    EXPECT_EQ(again.state.values, arena_of(outcome.state, WeightAverage::kWeights)) << file;
  }
}

TEST(Ema, HasTheSameBitsOnEachReplicaAndForAnyNumberInExactMode) {
  const data::Splits data = formula_splits(4 * 64);
  const Outcome one = run(averaged(normed(exact_options(1))), data);
  for (const int replicas : {2, 4}) {
    const Outcome many = run(averaged(normed(exact_options(replicas))), data);
    for (const HostState& of_rank : many.of_ranks) {
      EXPECT_TRUE(bytes_of(of_rank) == bytes_of(one.state)) << replicas;
    }
    EXPECT_EQ(many.epochs.back().test.loss, one.epochs.back().test.loss) << replicas;
  }
}

TEST(Ema, AStepThatF16SkipsDoesNotMoveIt) {
  TrainOptions options = averaged(normed(plain_options(2)));
  options.recipe.precision = Precision::f16;
  options.execution.emulate_precision = true;
  options.max_steps = 2;
  options.recipe.lr = 0.01;
  const RunSetup setup = make_run_setup(options, formula_splits(4 * 64), 2);
  HostState start;
  const Outcome outcome = run(setup, {}, [&](TrainLoop& loop, Device& device, int rank) {
    loop.set_loss_scale({.scale = std::ldexp(1.0, 127)});
    if (rank != 0) return;
    start = download(device, loop.replica().parameters(), loop.optimizer().state());
  });
  ASSERT_EQ(outcome.steps.size(), 2U);
  ASSERT_TRUE(outcome.steps[0].skipped && outcome.steps[1].skipped);
  EXPECT_EQ(arena_of(outcome.state, WeightAverage::kWeights), start.values);
  EXPECT_EQ(arena_of(outcome.state, WeightAverage::kBuffers), start.buffers);
}

/// Two launches of a captured graph take the shares of their own steps.
TEST(CudaEma, AveragesInGraphsAsOnProcessors) {
  if (cuda_device_count() == 0) GTEST_SKIP() << "no GPU: " << survey_cuda().why_none;
  TrainOptions options = averaged(plain_options(1));
  options.recipe.model = "mlp";
  const data::Splits data = formula_splits(6 * 64);
  const Outcome expected = run(options, data);
  options.execution.devices = {{DeviceKind::cuda, 0}};
  const Outcome outcome = run(options, data);
  const Tensors& average = arena_of(outcome.state, WeightAverage::kWeights);
  const Tensors& on_processor = arena_of(expected.state, WeightAverage::kWeights);
  for (std::size_t i = 0; i < average.size(); ++i) {
    EXPECT_LT(test::relative_l2(average[i], on_processor[i]), 1e-4) << i;
  }
  EXPECT_NEAR(outcome.epochs.back().test.loss, expected.epochs.back().test.loss, 1e-3);
}

}  // namespace
}  // namespace ringlet::train
