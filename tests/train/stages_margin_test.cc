// A loss with a margin on the last stage of a model: the bits are those of one stage with the same
// replicas and micro-batches, whatever the schedule and the cuts.

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <cmath>
#include <filesystem>
#include <string>
#include <utility>
#include <vector>

#include "kernels/elementwise.h"
#include "nn/layers/linear.h"
#include "nn/layers/sequential.h"
#include "nn/layers/stateless.h"
#include "tests/comm/processes.h"
#include "tests/support/files.h"
#include "tests/train/margin_trial.h"
#include "tests/train/runs.h"
#include "train/telemetry/metrics.h"

namespace ringlet::train {

namespace {

constexpr auto kNaive = PipelineSchedule::naive;
constexpr auto kGpipe = PipelineSchedule::gpipe;
constexpr auto kOneByOne = PipelineSchedule::one_f_one_b;

struct StagedWay {
  std::string stages;
  int count;
  PipelineSchedule schedule;
  bool recompute = false;
};

const std::vector<StagedWay>& all_ways() {
  static const std::vector<StagedWay> ways{{"2", 2, kNaive},
                                           {"2", 2, kGpipe},
                                           {"2", 2, kOneByOne},
                                           {"flatten..relu1,dropout,fc2..fc3", 3, kGpipe},
                                           {"flatten..dropout,fc2..relu2,fc3", 3, kOneByOne},
                                           {"3", 3, kGpipe, true}};
  return ways;
}

/// Masks that depend on where a sample stands, and enough layers for three stages.
std::unique_ptr<nn::Layer> make_deeper(const nn::ModelInput& input) {
  auto net = std::make_unique<nn::Sequential>();
  net->add<nn::Flatten>("flatten");
  net->add<nn::Linear>("fc1", kSide * kSide, 12);
  net->add<nn::ReLU>("relu1");
  net->add<nn::Dropout>("dropout", 0.2F);
  net->add<nn::Linear>("fc2", 12, 10);
  net->add<nn::ReLU>("relu2");
  net->add<nn::Linear>("fc3", 10, input.outputs);
  return net;
}

Trial in_stages(Trial trial, const StagedWay& way) {
  Execution& execution = trial.options.execution;
  const std::size_t replicas = execution.devices.size();
  execution.stages = way.stages;
  execution.pipeline = way.schedule;
  execution.recompute = way.recompute;
  execution.measures_stages = false;
  execution.devices.resize(replicas * static_cast<std::size_t>(way.count));
  return trial;
}

/// All that a run tells, and what it leaves in its folder.
struct Told {
  std::vector<double> losses, norms;
  std::vector<bool> skipped;
  std::vector<double> epochs;
  std::vector<std::int64_t> right;
  std::vector<double> angles;
  std::string files;
  bool operator==(const Told&) const = default;
};

Told told_by(const Outcome& outcome) {
  Told told;
  for (const StepReport& step : outcome.steps) {
    told.losses.push_back(step.loss);
    told.norms.push_back(step.grad_norm);
    told.skipped.push_back(step.skipped);
  }
  for (const EpochReport& epoch : outcome.epochs) {
    told.epochs.insert(told.epochs.end(), {epoch.train_loss, epoch.test.loss});
    told.right.insert(told.right.end(),
                      {epoch.test.right, epoch.test.without_length, epoch.test.samples});
    for (const Figure& figure : epoch.told) {  // one class has no other, and no angle to it
      told.angles.push_back(std::isnan(figure.value) ? -1 : figure.value);
    }
  }
  return told;
}

class Watcher : public RunListener {
 public:
  bool wants_grad_norm() const override { return true; }
};

Told learn(Trial trial) {
  const testing::TemporaryDirectory folder;
  trial.options.files.out = folder.path();
  Watcher watcher;
  Told told = told_by(trial.to_the_end({&watcher}));
  told.files =
      files_of(folder.path()) + testing::read_file(folder / "state" / "optimizer.safetensors");
  return told;
}

void expect_bits_of_one_stage(const Trial& trial, const std::vector<StagedWay>& ways = all_ways()) {
  const Told expected = learn(trial);
  ASSERT_FALSE(expected.losses.empty());
  ASSERT_FALSE(expected.angles.empty());
  for (const StagedWay& way : ways) {
    SCOPED_TRACE(fmt::format("{} by {}{}", way.stages, name_of(way.schedule),
                             way.recompute ? ", recomputing" : ""));
    const Told actual = learn(in_stages(trial, way));
    EXPECT_EQ(actual.losses, expected.losses);
    EXPECT_EQ(actual.norms, expected.norms);
    EXPECT_EQ(actual.skipped, expected.skipped);
    EXPECT_EQ(actual.epochs, expected.epochs);
    EXPECT_EQ(actual.right, expected.right);
    EXPECT_EQ(actual.angles, expected.angles);
    EXPECT_TRUE(actual.files == expected.files);
  }
}

Trial plain(int replicas, int micro_batches, int classes = 10) {
  Trial trial(plain_options(replicas), classes);
  trial.options.make_model = make_deeper;
  trial.options.recipe.accumulate = micro_batches;
  trial.options.recipe.epochs = 2;
  return trial;
}

}  // namespace

class StagesMargin : public ::testing::TestWithParam<int> {};
INSTANTIATE_TEST_SUITE_P(Replicas, StagesMargin, ::testing::Values(1, 2));

TEST_P(StagesMargin, HasTheBitsOfOneStage) {
  for (const int micro_batches : {1, 4}) {
    SCOPED_TRACE(micro_batches);
    expect_bits_of_one_stage(plain(GetParam(), micro_batches));
  }
}

// A last batch of 10 leaves some of 8 micro-batches empty, on one replica or on both.
TEST_P(StagesMargin, PassesOverEmptyMicroBatches) {
  expect_bits_of_one_stage(plain(GetParam(), 8));
}

// Fewer classes than replicas: one of them has no row.
TEST_P(StagesMargin, HasReplicasWithoutClasses) {
  expect_bits_of_one_stage(plain(GetParam(), 3, 1), {{"2", 2, kOneByOne}, {"3", 3, kGpipe}});
}

TEST_P(StagesMargin, ClipsByTheNormOfTheWholeModel) {
  Trial trial = plain(GetParam(), 4);
  trial.options.recipe.clip_norm = 0.02;
  expect_bits_of_one_stage(trial);
}

TEST_P(StagesMargin, WarmsUpAndFilters) {
  Trial trial = plain(GetParam(), 3);
  trial.options.recipe.loss = "combined";
  trial.options.recipe.margin_warmup = 2;
  trial.options.recipe.filter = 0.4;
  expect_bits_of_one_stage(trial, {{"3", 3, kOneByOne}, {"2", 2, kGpipe, true}});
}

TEST_P(StagesMargin, SamplesTheClassesThatOneStageSamples) {
  for (const char* optimizer : {"sgd", "adamw"}) {
    SCOPED_TRACE(optimizer);
    Trial trial = plain(GetParam(), 3, 33);
    trial.options.recipe.sample_rate = 0.2;
    trial.options.recipe.optimizer = optimizer;
    trial.options.recipe.momentum = std::string(optimizer) == "sgd" ? 0.9 : 0;
    trial.options.recipe.clip_norm = 0.05;
    expect_bits_of_one_stage(trial, {{"2", 2, kGpipe}, {"3", 3, kOneByOne}});
  }
}

TEST_P(StagesMargin, HasTheBitsOfOneStageInExactMode) {
  Trial trial(exact_options(GetParam()));
  trial.options.make_model = make_deeper;
  trial.options.recipe.accumulate = 2;
  trial.options.recipe.clip_norm = 0.05;
  expect_bits_of_one_stage(trial, {{"2", 2, kOneByOne}, {"3", 3, kGpipe}, {"2", 2, kGpipe, true}});
}

TEST_P(StagesMargin, SkipsTheStepsThatOneStageSkips) {
  Trial trial = plain(GetParam(), 4);
  trial.options.recipe.epochs = 4;
  trial.options.recipe.precision = Precision::f16;
  trial.options.execution.emulate_precision = true;
  const auto from_a_large_scale = [](const Trial& made) {
    const int ranks = static_cast<int>(made.options.execution.devices.size());
    return told_by(
        run(make_run_setup(made.options, made.data, ranks), {}, [](TrainLoop& loop, Device&, int) {
          loop.set_loss_scale({.scale = std::ldexp(1.0, 24)});
        }));
  };
  const auto shown = [](Told told) {  // nobody asks for the norms
    told.norms.clear();
    return told;
  };
  const Told expected = shown(from_a_large_scale(trial));
  EXPECT_TRUE(expected.skipped.front());
  EXPECT_FALSE(expected.skipped.back());
  for (const StagedWay& way : all_ways()) {
    EXPECT_TRUE(shown(from_a_large_scale(in_stages(trial, way))) == expected) << way.stages;
  }
}

namespace {

/// The losses of the rest, and the files at the end, of a run that `first` begins in a folder and
/// `rest` ends there.
Told resumed(Trial first, Trial rest, std::int64_t most_centres_sent) {
  const testing::TemporaryDirectory folder;
  constexpr std::int64_t kSteps = 4;  // in the second epoch
  for (Trial* trial : {&first, &rest}) {
    trial->options.files.out = folder.path();
    trial->options.files.most_centres_sent = most_centres_sent;
  }
  first.options.max_steps = kSteps;
  first.to_the_end();
  const int ranks = static_cast<int>(rest.options.execution.devices.size());
  Told told =
      told_by(run(make_run_setup(rest.options, rest.data, ranks, read_state(folder.path()))));
  told.norms.clear();
  told.files =
      files_of(folder.path()) + testing::read_file(folder / "state" / "optimizer.safetensors");
  return told;
}

}  // namespace

TEST_P(StagesMargin, GoesOnFromTheStatesOfOneStageAndItFromTheirs) {
  struct Case {
    const char* optimizer = "";
    double rate = 1;
    std::int64_t most_sent = 0;  // beyond it each rank writes its own rows
    double ema = 0;
    bool has_buffers = false;
  };
  const std::int64_t many = Files().most_centres_sent;
  for (const auto& [optimizer, rate, most_sent, ema, has_buffers] :
       {Case{"sgd", 1, many}, Case{"adamw", 1, 0}, Case{"adamw", 0.2, many}, Case{"sgd", 0.2, 0},
        Case{"adamw", 0.2, many, 0.7}, Case{"adamw", 0.2, 0, 0.7},
        Case{"adamw", 0.2, many, 0.7, true}}) {
    SCOPED_TRACE(fmt::format("{}, rate {}, {} bytes, average {}, buffers {}", optimizer, rate,
                             most_sent, ema, has_buffers));
    Trial trial = plain(GetParam(), 3, 33);
    if (has_buffers) trial.options.make_model = normed(trial.options).make_model;
    trial.options.recipe.ema = ema;
    trial.options.recipe.optimizer = optimizer;
    trial.options.recipe.momentum = std::string(optimizer) == "sgd" ? 0.9 : 0;
    trial.options.recipe.sample_rate = rate;
    const Trial cut = in_stages(trial, {"3", 3, kOneByOne});
    const Told expected = resumed(trial, trial, most_sent);
    ASSERT_FALSE(expected.losses.empty());
    EXPECT_TRUE(resumed(trial, cut, most_sent) == expected);
    EXPECT_TRUE(resumed(cut, trial, most_sent) == expected);
    EXPECT_TRUE(resumed(cut, cut, most_sent) == expected);
  }
}

TEST(StagesMarginRun, ProcessesLearnWhatThreadsLearn) {
  const Trial trial = in_stages(plain(2, 4), {"2", 2, kOneByOne});
  const Told threads = learn(trial);
  const testing::TemporaryDirectory folder;
  comm::Processes processes({2, 2});
  comm::run_ranks(2, [&](int process) {
    Trial half = trial;
    half.options.execution.devices.resize(2);
    half.options.execution.in_processes = true;
    half.options.execution.transport = TransportChoice::shm;
    half.options.files.out = folder.path();
    train(processes.group(process), make_run_setup(half.options, half.data, 4), {});
  });
  EXPECT_TRUE(files_of(folder.path()) +
                  testing::read_file(folder / "state" / "optimizer.safetensors") ==
              threads.files);
}

TEST(StagesMarginRun, StartsFromCentresByName) {
  const testing::TemporaryDirectory folder;
  Trial first = plain(2, 3);
  first.options.make_model = normed(first.options).make_model;  // with running statistics
  Trial trial = first;
  first.options.files.out = folder.path();
  first.to_the_end();
  trial.options.files.init_centres = folder.path();
  expect_bits_of_one_stage(trial, {{"2", 2, kOneByOne}});
}

TEST(StagesMarginRun, SaysWhatTheCentresOfItsLastStageTake) {
  struct Start final : RunListener {
    void started(const StartReport& report) override { centres = report.centres; }
    std::string centres;
  };
  const Trial trial = plain(2, 3);
  Start whole, cut;
  Trial(trial).to_the_end({&whole});
  in_stages(trial, {"3", 3, kGpipe}).to_the_end({&cut});
  EXPECT_NE(whole.centres.find("10 centres of 6, up to 5 a replica"), std::string::npos);
  EXPECT_EQ(cut.centres, whole.centres);
}

/// A number that is broken in the last stage, on its second replica: rank 3 of the world.
TEST(StagesMarginRun, NamesTheStageWithABrokenRow) {
  Trial trial = in_stages(plain(2, 3), {"2", 2, kOneByOne});
  const std::string error = testing::message_of<Error>([&] {
    run(make_run_setup(trial.options, trial.data, 4), {},
        [](TrainLoop& loop, Device& device, int rank) {
          const nn::Parameter& centres = *loop.replica().parameters().registry().parameters.back();
          if (rank == 3)
            fill(device.compute(), NAN, centres.value.reshaped({centres.held().count()}));
        });
  });
  EXPECT_NE(error.find("the parameter centres.weight itself (30 of its 30 numbers of classes 5 to "
                       "9), so an earlier update broke it (stage 1 ("),
            std::string::npos)
      << error;
  EXPECT_NE(error.find("), replica 1, rank 3)"), std::string::npos) << error;
}

// Of the last stage alone, of a replica's share of the classes.
TEST(StagesMarginRun, PlansTheMemoryOfTheCentres) {
  constexpr int kClasses = 100;
  const auto standing = [](int replicas, int classes) {
    const Trial trial =
        in_stages(plain(replicas, 4, classes), {"flatten..dropout,fc2..fc3", 2, kOneByOne});
    const RunSetup setup = make_run_setup(trial.options, trial.data, 2 * replicas);
    return std::pair(setup.stages->forecast.stages[0].standing_bytes,
                     setup.stages->forecast.stages[1].standing_bytes);
  };
  const auto alone = standing(1, kClasses), shared = standing(2, kClasses), few = standing(1, 10);
  EXPECT_EQ(alone.first, few.first);
  EXPECT_EQ(alone.first, shared.first);
  constexpr std::int64_t kNumbers = 3;  // a value, a gradient and the velocity
  EXPECT_NEAR(static_cast<double>(alone.second - few.second), kNumbers * 90 * kSize * 4, 3 * 128);
  EXPECT_NEAR(static_cast<double>(alone.second - shared.second), kNumbers * 50 * kSize * 4,
              3 * 128);
}

}  // namespace ringlet::train
