// Training with bf16 and f16 activations: near f32, in exact mode the same bits for any replicas
// and threads, and under f16 with a scale on which all ranks agree.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <string>
#include <vector>

#include "kernels/elementwise.h"
#include "nn/layers/batch_norm2d.h"
#include "nn/layers/conv2d.h"
#include "nn/layers/linear.h"
#include "nn/layers/sequential.h"
#include "nn/layers/stateless.h"
#include "tests/support/files.h"
#include "tests/train/resnet_start.h"
#include "tests/train/runs.h"
#include "train/learner.h"
#include "train/loop/train_step.h"
#include "train/recipe/models.h"
#include "train/recipe/precision_support.h"
#include "train/reports/failure.h"

namespace ringlet::train {
namespace {

using testing::message_of;
using testing::says;

TrainOptions in_precision(Precision precision, TrainOptions options) {
  options.recipe.precision = precision;
  options.execution.emulate_precision = true;
  return options;
}

std::string name_of_tested(const ::testing::TestParamInfo<Precision>& tested) {
  return name_of(tested.param);
}

/// Exact mode: the same bits from options(replicas) for any replicas and threads.
template <class Options>
void expect_same_bits(const data::Splits& data, Options options) {
  const auto bits_of = [&](int replicas, int threads) {
    TrainOptions mine = options(replicas);
    mine.execution.threads = threads;
    return bytes_of(run(mine, data).state);
  };
  const std::string one = bits_of(1, 1);
  EXPECT_EQ(bits_of(2, 1), one);
  EXPECT_EQ(bits_of(4, 1), one);
  EXPECT_EQ(bits_of(1, 3), one);
}

class NarrowTraining : public ::testing::TestWithParam<Precision> {};

TEST_P(NarrowTraining, LearnsNearlyWhatF32Does) {
  const data::Splits data = formula_splits(640, 100);
  for (const int replicas : {1, 2, 3}) {
    TrainOptions options = plain_options(replicas);
    options.recipe.lr = 0.02;  // a calm descent, which rounding does not throw off its way
    options.recipe.momentum = 0.5;
    const Outcome wide = run(options, data), narrow = run(in_precision(GetParam(), options), data);
    ASSERT_EQ(narrow.steps.size(), wide.steps.size());
    EXPECT_LT(wide.losses().back(), 0.95 * wide.losses().front()) << "too little is learnt";
    EXPECT_NE(narrow.losses(), wide.losses());
    for (std::size_t i = 0; i < wide.steps.size(); ++i) {
      EXPECT_NEAR(narrow.losses()[i], wide.losses()[i], 0.03 * wide.losses()[i]) << i;
      EXPECT_FALSE(narrow.steps[i].skipped) << i;
    }
    EXPECT_NEAR(narrow.result.test.loss, wide.result.test.loss, 0.05 * wide.result.test.loss);
    for (const HostState& state : narrow.of_ranks) {
      EXPECT_EQ(bytes_of(state), bytes_of(narrow.of_ranks[0]));
    }
  }
}

TEST_P(NarrowTraining, HasTheSameBitsForAnyReplicasAndThreadsInExactMode) {
  expect_same_bits(formula_splits(160), [](int replicas) {
    return in_precision(GetParam(), normed(exact_options(replicas)));
  });
}

TEST_P(NarrowTraining, NormalisesByTheWorldsBatch) {
  const data::Splits data = formula_splits(192);
  TrainOptions options = in_precision(GetParam(), normed(plain_options(1)));
  const Outcome one = run(options, data);
  options.recipe.batch_norm = BatchStatistics::world;
  for (const int replicas : {2, 3}) {
    options.execution.devices.assign(static_cast<std::size_t>(replicas), DeviceId{});
    const Outcome several = run(options, data);
    EXPECT_EQ(bytes_of(several.of_ranks[1]), bytes_of(several.state));
    for (std::size_t i = 0; i < one.steps.size(); ++i) {
      EXPECT_NEAR(several.losses()[i], one.losses()[i], 0.01 * one.losses()[i]);
    }
  }
}

INSTANTIATE_TEST_SUITE_P(Precisions, NarrowTraining,
                         ::testing::Values(Precision::bf16, Precision::f16), name_of_tested);

/// Products of bf16 by the processor's own instructions.
class Bf16OfTheProcessor : public ::testing::Test {
 protected:
  void SetUp() override {
    if (bf16_products(false) == Bf16Products::none) {
      GTEST_SKIP() << "this processor has no products of bf16";
    }
  }
  static TrainOptions resnet20(TrainOptions options, bool emulate = false) {
    options.recipe.model = "resnet20";
    options.execution.layout = LayoutChoice::lanes;
    options = in_precision(Precision::bf16, std::move(options));
    options.execution.emulate_precision = emulate;
    return options;
  }
};

TEST_F(Bf16OfTheProcessor, LearnNearlyWhatTheyDoThroughF32) {
  const data::Splits data{small_images(320), small_images(16)};
  TrainOptions options = plain_options(2);
  options.recipe.lr = 0.01;
  const Outcome native = run(resnet20(options), data),
                emulated = run(resnet20(options, true), data);
  EXPECT_NE(native.losses(), emulated.losses()) << "nothing was multiplied another way";
  for (std::size_t i = 0; i < native.steps.size(); ++i) {
    EXPECT_NEAR(native.losses()[i], emulated.losses()[i], 0.02 * emulated.losses()[i]) << i;
  }
}

TEST_F(Bf16OfTheProcessor, HaveTheSameBitsForAnyReplicasAndThreadsInExactMode) {
  expect_same_bits({small_images(128), small_images(16)},
                   [](int replicas) { return resnet20(exact_options(replicas)); });
}

TEST(Precision, IsRefusedWhereItWouldOnlyBeSlower) {
  const data::Splits data = formula_splits(64);
  TrainOptions options = plain_options(1);
  for (const Precision precision : {Precision::bf16, Precision::f16}) {
    options.recipe.precision = precision;
    const std::string flag = std::string("--precision ") + name_of(precision);
    EXPECT_TRUE(says(message_of<ContractError>([&] { make_run_setup(options, data, 1); }),
                     {flag, "slower than f32", "--emulate-precision"}));
    LearnerOptions learner_options;
    learner_options.recipe.precision = precision;
    const auto make_learner = [&] {
      run_replicas(options.execution, [&](Device& device, comm::Communicator& communicator) {
        Learner(
            device, communicator,
            [](const nn::ModelInput& input) { return make_model("mlp", input); }, learner_options);
      });
    };
    EXPECT_TRUE(says(message_of<Error>(make_learner), {flag, "--emulate-precision"}));
  }
}

TEST(Precision, Tf32IsSaidByEither) {
  const data::Splits data = formula_splits(64);
  TrainOptions options = plain_options(1);
  options.execution.tf32 = true;
  EXPECT_EQ(make_run_setup(options, data, 1).options.recipe.precision, Precision::tf32);
  options.execution.tf32 = false;
  options.recipe.precision = Precision::tf32;
  EXPECT_TRUE(make_run_setup(options, data, 1).options.execution.tf32);
  options.execution.tf32 = options.execution.emulate_precision = true;
  options.recipe.precision = Precision::bf16;
  EXPECT_TRUE(says(message_of<ContractError>([&] { make_run_setup(options, data, 1); }),
                   {"--tf32", "--precision bf16", "leave one of them out"}));
}

/// Which gradients break: asked by each rank's thread in each of its passes, from 0.
struct Plan {
  int rank = 0;
  int first = 0;  ///< pass of that rank
  int passes = 1;
};

thread_local int this_rank = 0;
thread_local int this_pass = 0;

/// The identity, and a parameter whose gradient is infinite where the plan says so, else 0.
class Planted : public nn::Layer {
 public:
  explicit Planted(const Plan& plan) : plan_(plan), parameter_({1}, nn::Initializer::zeros()) {}
  nn::Variable forward(nn::Tape& tape, const nn::Variable& x) override {
    const nn::Variable p = tape.parameter(parameter_);
    const nn::Variable y = tape.make(x.shape(), x.layout(), x.dtype());
    copy(tape.stream(), x.value(), y.value());
    tape.record("planted", {x, p}, y, [this, p](nn::Backward& backward) {
      const bool dry = backward.stream().device().id().kind == DeviceKind::meta;
      const int pass = dry ? -1 : this_pass++;
      const bool broken = !dry && this_rank == plan_.rank && pass >= plan_.first &&
                          pass < plan_.first + plan_.passes;
      fill(backward.stream(), broken ? std::numeric_limits<float>::infinity() : 0,
           backward.target(p).view);
    });
    return y;
  }
  void register_in(nn::Registry& registry, const std::string& prefix) override {
    registry.add(parameter_, prefix + "weight");
  }

 private:
  Plan plan_;
  nn::Parameter parameter_;
};

MakeModel planted_model(const Plan& plan) {
  return [plan](const nn::ModelInput& input) {
    auto net = std::make_unique<nn::Sequential>();
    net->add<Planted>("planted", plan);
    net->add<nn::Conv2d>("conv", nn::Conv2dOptions{.in_channels = input.channels,
                                                   .out_channels = 4,
                                                   .kernel = {3, 3},
                                                   .spec = {.stride = {2, 2}},
                                                   .bias = false});
    net->add<nn::BatchNorm2d>("norm", 4);
    net->add<nn::ReLU>("relu");
    net->add<nn::AdaptiveAvgPool2d>("pool");
    net->add<nn::Flatten>("flatten");
    net->add<nn::Linear>("fc", 4, input.outputs);
    return net;
  };
}

constexpr Plan kNever{.rank = -1};

TrainOptions scaled_options(int replicas, const Plan& plan) {
  TrainOptions options = in_precision(Precision::f16, plain_options(replicas));
  options.recipe.model = "planted";
  options.recipe.schedule = ScheduleKind::one_cycle;
  options.recipe.optimizer = "adamw";
  options.recipe.momentum = 0;
  options.make_model = planted_model(plan);
  return options;
}

/// Trains; `scale`: what the state says at the start.
Outcome run_planted(const TrainOptions& options, const data::Splits& data,
                    const LossScaleState& scale = {}) {
  const int ranks = static_cast<int>(options.execution.devices.size());
  return run(make_run_setup(options, data, ranks), {}, [&](TrainLoop& loop, Device&, int rank) {
    this_rank = rank;
    this_pass = 0;
    loop.set_loss_scale(scale);
  });
}

TEST(LossScale, OneInfinityOfOneRankSkipsTheStepOfAll) {
  const data::Splits data = formula_splits(320);
  for (const int replicas : {1, 2, 3}) {
    const int rank = replicas - 1;
    TrainOptions options = scaled_options(replicas, {.rank = rank, .first = 2});
    const Outcome whole = run_planted(options, data),
                  good = run_planted(scaled_options(replicas, kNever), data);
    ASSERT_EQ(whole.steps.size(), 5U);
    for (std::size_t i = 0; i < whole.steps.size(); ++i) {
      EXPECT_EQ(whole.steps[i].skipped, i == 2) << i;
      EXPECT_EQ(whole.steps[i].loss_scale, i <= 2 ? 65536 : 32768) << i;
      // The schedule waits for the step that was skipped.
      EXPECT_EQ(whole.steps[i].lr, good.steps[i <= 2 ? i : i - 1].lr) << i;
    }
    for (const HostState& state : whole.of_ranks) {
      EXPECT_EQ(bytes_of(state), bytes_of(whole.of_ranks[0]));
      EXPECT_EQ(state.counters, std::vector<std::int64_t>{4});  // batches that were tracked
    }
    // What the skipped step leaves is what it found: weights, buffers, both averages.
    options.max_steps = 2;
    const Outcome before = run_planted(options, data);
    options.max_steps = 3;
    const Outcome behind = run_planted(options, data);
    EXPECT_EQ(bytes_of(before.state), bytes_of(behind.state));
  }
}

// AdamW's first step is the learning rate in every direction; its second would be three quarters.
TEST(LossScale, AdamWCountsOnlyStepsThatWereMade) {
  const data::Splits data = formula_splits(128);
  TrainOptions options = scaled_options(1, {.rank = 0, .first = 0});
  options.recipe.schedule = ScheduleKind::constant;
  options.recipe.weight_decay = 0;
  options.max_steps = 0;
  const Outcome start = run_planted(options, data);
  options.max_steps = 2;
  const Outcome end = run_planted(options, data);
  EXPECT_TRUE(end.steps[0].skipped);
  const std::vector<float>&before = start.state.values.back(), &after = end.state.values.back();
  double largest = 0;
  for (std::size_t i = 0; i < before.size(); ++i) {
    largest = std::max(largest, std::abs(static_cast<double>(after[i] - before[i])));
  }
  EXPECT_NEAR(largest, options.recipe.lr, 0.01 * options.recipe.lr);
}

TEST(LossScale, GrowsAfterTwoThousandGoodStepsInARow) {
  const data::Splits data = formula_splits(256);
  const Outcome outcome =
      run_planted(scaled_options(2, kNever), data, {.scale = 256, .good_steps = 1998});
  std::vector<double> scales;
  for (const StepReport& step : outcome.steps) scales.push_back(step.loss_scale);
  EXPECT_EQ(scales, (std::vector<double>{256, 256, 512, 512}));
}

TEST(LossScale, TwentySkipsInARowEndTheRun) {
  const data::Splits data = formula_splits(64 * 21);
  const TrainOptions options = scaled_options(2, {.rank = 1, .first = 1, .passes = 100});
  EXPECT_TRUE(
      says(message_of<RunError>([&] { run_planted(options, data, {.scale = 8}); }),
           {"20 steps in a row", "step 21", "no more than 1;", "--precision bf16", "--lr"}));
  const TrainOptions nineteen = scaled_options(2, {.rank = 1, .first = 1, .passes = 19});
  const Outcome outcome = run_planted(nineteen, data, {.scale = 8});
  EXPECT_EQ(outcome.steps.back().loss_scale, 1);
  EXPECT_FALSE(outcome.steps.back().skipped);
  EXPECT_EQ(std::count_if(outcome.steps.begin(), outcome.steps.end(),
                          [](const StepReport& step) { return step.skipped; }),
            19);
}

// A scale that is too large breaks numbers by itself, until it fits.
TEST(LossScale, FallsUntilItFits) {
  const data::Splits data = formula_splits(64 * 12);
  const Outcome outcome = run_planted(scaled_options(1, kNever), data, {.scale = 0x1p30});
  EXPECT_TRUE(outcome.steps.front().skipped);
  EXPECT_FALSE(outcome.steps.back().skipped);
  EXPECT_LT(outcome.steps.back().loss_scale, 0x1p30);
  EXPECT_TRUE(std::isfinite(outcome.epochs.back().train_loss));
}

TEST(LossScale, ClipsTheGradientAsItIsWithoutTheScale) {
  const data::Splits data = formula_splits(256);
  TrainOptions options = scaled_options(2, kNever);
  options.recipe.optimizer = "sgd";
  options.recipe.clip_norm = 0.05;
  const Outcome clipped = run_planted(options, data);
  options.recipe.precision = Precision::f32;
  const Outcome wide = run(options, data);
  for (std::size_t i = 0; i < wide.steps.size(); ++i) {
    EXPECT_NEAR(clipped.steps[i].loss, wide.steps[i].loss, 0.01 * wide.steps[i].loss);
  }
}

/// Six steps of AdamW with a falling rate, the third of which is broken. Sums are taken when more
/// than `in_flight` of them are on their way, as on a GPU, where the host does not know by then
/// whether a step was made.
HostState six_steps(int in_flight) {
  constexpr std::int64_t kSamples = 8;
  ReplicaSpec spec;
  spec.recipe.precision = Precision::f16;
  spec.recipe.optimizer = "adamw";
  spec.make_model = planted_model({.rank = 0, .first = 2});
  spec.max_train_batch = spec.max_eval_batch = kSamples;
  std::vector<float> images(kSamples * 28 * 28);
  for (std::size_t i = 0; i < images.size(); ++i) images[i] = static_cast<float>(i % 13) / 13;
  std::vector<std::int32_t> labels{0, 1, 2, 3, 4, 5, 6, 7};
  HostState state;
  run_replicas(Execution(), [&](Device& device, comm::Communicator& communicator) {
    this_rank = this_pass = 0;
    TrainStep step(device, communicator, spec, {.in_flight = in_flight});
    step.replica().parameters().initialize(1);
    int open = 0;
    for (std::int64_t done = 0; done < 6; ++done) {
      std::vector<Rates> rates;
      for (std::int64_t k = done - step.skips() - open; k <= done - step.skips(); ++k) {
        rates.push_back({.lr = 0.1 / static_cast<double>(k + 1), .step = k});
      }
      step.begin_with_one_of(rates, kSamples, kSamples, false);
      step.add({images.data(), labels.data(), kSamples, {0, 0, kSamples}}, {});
      step.finish_gradients();
      step.update();
      step.send_sums();
      for (++open; open > in_flight; --open) step.take_sums();
    }
    for (; open > 0; --open) step.take_sums();
    EXPECT_EQ(step.skips(), 1);
    state = step.download_state();
  });
  return state;
}

TEST(LossScale, ChoosesTheRatesItselfWhereTheHostDoesNotKnowYet) {
  const HostState known = six_steps(0);
  EXPECT_EQ(known.loss_scale, (LossScaleState{.scale = 32768, .good_steps = 3, .skips = 1}));
  for (const int in_flight : {1, 2, 5}) {
    EXPECT_EQ(bytes_of(six_steps(in_flight)), bytes_of(known)) << in_flight;
  }
}

TEST(LossScale, NeedsAnOptimizerThatSkips) {
  const data::Splits data = formula_splits(64);
  TrainOptions options = scaled_options(1, kNever);
  class Own : public Optimizer {
   public:
    Own(Device& device, const nn::Parameters& parameters) : Optimizer(device, parameters, {}) {}
    void step(ConstView) override {}
  };
  options.make_optimizer = [](Device& device, const nn::Parameters& parameters, const Recipe&) {
    return std::make_unique<Own>(device, parameters);
  };
  EXPECT_TRUE(says(message_of<Error>([&] { run(options, data); }),
                   {"--precision f16", "does not skip steps"}));
}

TEST(LearnerInF16, TellsOfASkippedStepAndGoesOnAfterResuming) {
  const testing::TemporaryDirectory folder;
  const nn::ModelInput input{1, 28, 28, 10};
  LearnerOptions options{.input = input, .max_batch = 8, .emulate_precision = true};
  options.recipe.precision = Precision::f16;
  const std::vector<float> images = [] {
    std::vector<float> pixels(8 * 28 * 28);
    for (std::size_t i = 0; i < pixels.size(); ++i) pixels[i] = static_cast<float>(i % 13) / 13;
    return pixels;
  }();
  std::vector<std::int32_t> labels{0, 1, 2, 3, 4, 5, 6, 7};
  const auto batch = [&] {
    return data::Batch{const_cast<float*>(images.data()), labels.data(), 8, {0, 0, 8}};
  };
  Execution execution;
  std::string whole, resumed;
  const auto train = [&](std::string& bytes, bool resume) {
    run_replicas(execution, [&](Device& device, comm::Communicator& communicator) {
      this_rank = 0;
      this_pass = 0;
      Learner learner(device, communicator, planted_model({.rank = 0, .first = resume ? 99 : 1}),
                      options);
      if (resume) learner.resume(folder.path());
      for (int i = resume ? 2 : 0; i < 4; ++i) {
        learner.step(batch(), 8, {.lr = 0.1});
        EXPECT_EQ(learner.skipped(), i == 1);
        EXPECT_EQ(learner.steps(), i < 1 ? i + 1 : i);
        if (i == 1 && !resume) learner.save(folder.path());
      }
      bytes = bytes_of(download(device, learner.parameters(), {}));
    });
  };
  train(whole, false);
  EXPECT_EQ(read_state(folder.path()).loss_scale,
            (LossScaleState{.scale = 32768, .skips_in_row = 1, .skips = 1}));
  train(resumed, true);
  EXPECT_EQ(whole, resumed);
}

}  // namespace
}  // namespace ringlet::train
