// Runs of a model that is cut into stages: the bits are those of one stage with the same replicas
// and micro-batches, whatever the schedule and the cuts.

#include <fmt/format.h>
#include <gtest/gtest.h>
#include <stdlib.h>

#include <algorithm>
#include <atomic>
#include <memory>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "nn/layers/linear.h"
#include "nn/layers/sequential.h"
#include "nn/layers/stateless.h"
#include "tests/support/files.h"
#include "tests/support/gpu.h"
#include "tests/train/runs.h"
#include "tests/train/stand_in_nodes.h"
#include "train/optimizers/optimizer.h"
#include "train/telemetry/metrics.h"
#include "train/telemetry/metrics_reader.h"

namespace ringlet::train {

namespace {

struct Way {
  std::string stages;
  int count;
  PipelineSchedule schedule;
};

std::string in_words(const Way& way) { return way.stages + " by " + name_of(way.schedule); }

TrainOptions in_stages(TrainOptions options, const Way& way) {
  const std::size_t replicas = options.execution.devices.size();
  options.execution.stages = way.stages;
  options.execution.pipeline = way.schedule;
  options.execution.devices.resize(replicas * static_cast<std::size_t>(way.count));
  return options;
}

/// All that a run tells and leaves behind.
void expect_equal(const Outcome& actual, const Outcome& expected) {
  EXPECT_EQ(actual.losses(), expected.losses());
  EXPECT_TRUE(bytes_of(actual.state) == bytes_of(expected.state));
  ASSERT_EQ(actual.epochs.size(), expected.epochs.size());
  for (std::size_t i = 0; i < expected.epochs.size(); ++i) {
    EXPECT_EQ(actual.epochs[i].train_loss, expected.epochs[i].train_loss);
    EXPECT_EQ(actual.epochs[i].test.loss, expected.epochs[i].test.loss);
    EXPECT_EQ(actual.epochs[i].test.right, expected.epochs[i].test.right);
    EXPECT_EQ(actual.epochs[i].test.samples, expected.epochs[i].test.samples);
  }
}

void expect_bits_of_one_stage(const TrainOptions& options, const std::vector<Way>& ways,
                              std::int64_t samples = 150) {
  const data::Splits data = formula_splits(samples);
  const Outcome expected = run(options, data);
  ASSERT_FALSE(expected.steps.empty());
  for (const Way& way : ways) {
    SCOPED_TRACE(in_words(way));
    TrainOptions cut = in_stages(options, way);
    expect_equal(run(cut, data), expected);
    SCOPED_TRACE("recomputes");
    cut.execution.recompute = true;
    expect_equal(run(cut, data), expected);
  }
}

constexpr auto kNaive = PipelineSchedule::naive;
constexpr auto kGpipe = PipelineSchedule::gpipe;
constexpr auto kOneByOne = PipelineSchedule::one_f_one_b;

TrainOptions with_micro_batches(TrainOptions options, int count) {
  options.recipe.accumulate = count;
  return options;
}

}  // namespace

TEST(StagesRun, HasTheBitsOfOneStage) {
  expect_bits_of_one_stage(
      with_micro_batches(plain_options(1), 4),
      {{"2", 2, kNaive}, {"2", 2, kGpipe}, {"2", 2, kOneByOne}, {"3", 3, kOneByOne}});
}

TEST(StagesRun, HasTheBitsOfOneStageWithTwoReplicas) {
  expect_bits_of_one_stage(with_micro_batches(plain_options(2), 3),
                           {{"2", 2, kNaive}, {"2", 2, kGpipe}, {"3", 3, kOneByOne}});
}

TEST(StagesRun, TakesStagesByHand) {
  TrainOptions options = with_micro_batches(normed(plain_options(1)), 4);
  expect_bits_of_one_stage(options, {{"conv1..relu,block..fc", 2, kOneByOne},
                                     {"conv1..block,avgpool..flatten,fc", 3, kOneByOne},
                                     {"conv1,bn1..relu,block,avgpool..fc", 4, kOneByOne}});
}

TEST(StagesRun, HasTheBitsOfOneStageInExactMode) {
  TrainOptions options = with_micro_batches(normed(exact_options(2)), 2);
  expect_bits_of_one_stage(options, {{"2", 2, kOneByOne}, {"2", 2, kGpipe}});
}

TEST(StagesRun, SharesStatisticsOverTheReplicasOfAStage) {
  TrainOptions options = with_micro_batches(normed(plain_options(2)), 3);
  options.recipe.batch_norm = BatchStatistics::world;
  options.recipe.batch_size = 53;
  expect_bits_of_one_stage(options, {{"3", 3, kOneByOne}, {"2", 2, kGpipe}}, 2 * 53 + 3);
}

TEST(StagesRun, PassesOverEmptyMicroBatches) {
  TrainOptions options = with_micro_batches(normed(plain_options(2)), 8);
  options.recipe.batch_size = 53;
  expect_bits_of_one_stage(options, {{"3", 3, kOneByOne}, {"2", 2, kNaive}}, 2 * 53 + 3);
}

TEST(StagesRun, ClipsByTheNormOfTheWholeModel) {
  TrainOptions options = with_micro_batches(plain_options(1), 4);
  options.recipe.clip_norm = 0.5;
  expect_bits_of_one_stage(options, {{"2", 2, kOneByOne}, {"3", 3, kOneByOne}});
}

TEST(StagesRun, EachStageAveragesItsOwnWeights) {
  TrainOptions options = with_micro_batches(normed(plain_options(2)), 3);
  options.recipe.ema = 0.7;  // the stage of the flattening and the product has no buffers
  expect_bits_of_one_stage(options,
                           {{"3", 3, kOneByOne}, {"conv1..avgpool,flatten..fc", 2, kGpipe}});
}

TEST(StagesRun, UpdatesByAdamW) {
  TrainOptions options = with_micro_batches(normed(plain_options(2)), 4);
  options.recipe.optimizer = "adamw";
  options.recipe.momentum = 0;
  options.recipe.lr = 0.01;
  options.recipe.weight_decay = 0.01;
  expect_bits_of_one_stage(options, {{"2", 2, kOneByOne}});
}

TEST(StagesRun, HandsOnNarrowNumbers) {
  for (const Precision precision : {Precision::bf16, Precision::f16}) {
    TrainOptions options = with_micro_batches(normed(plain_options(2)), 4);
    options.recipe.precision = precision;
    options.execution.emulate_precision = true;
    expect_bits_of_one_stage(options, {{"3", 3, kOneByOne}});
  }
}

TEST(StagesRun, HasTheBitsOfOneStageForOtherModels) {
  for (const char* model : {"mlp", "resnet20"}) {
    SCOPED_TRACE(model);
    TrainOptions options = with_micro_batches(plain_options(1), 4);
    options.recipe.model = model;
    const int most = std::string(model) == "mlp" ? 3 : 4;
    expect_bits_of_one_stage(options, {{"2", 2, kGpipe}, {std::to_string(most), most, kOneByOne}},
                             100);
  }
}

namespace {

/// Masks that depend on where a sample stands, on both sides of each cut.
std::unique_ptr<nn::Layer> make_dropping_twice(const nn::ModelInput& input) {
  auto net = std::make_unique<nn::Sequential>();
  net->add<nn::Flatten>("flatten");
  net->add<nn::Linear>("fc1", input.channels * input.height * input.width, 24);
  net->add<nn::Dropout>("dropout1", 0.3F);
  net->add<nn::Linear>("fc2", 24, 16);
  net->add<nn::Dropout>("dropout2", 0.5F);
  net->add<nn::Linear>("fc3", 16, input.outputs);
  return net;
}

}  // namespace

TEST(StagesRun, DropsWhatOneStageDrops) {
  TrainOptions options = with_micro_batches(plain_options(2), 3);
  options.recipe.model = "dropping";
  options.make_model = make_dropping_twice;
  options.recipe.shuffle = true;
  expect_bits_of_one_stage(options, {{"2", 2, kOneByOne}, {"3", 3, kGpipe}, {"4", 4, kNaive}});
}

TEST(StagesRun, HasTheBitsOfOneReplicaInExactMode) {
  const data::Splits data = formula_splits(150);
  const TrainOptions alone = with_micro_batches(normed(exact_options(1)), 2);
  const TrainOptions four = with_micro_batches(normed(exact_options(4)), 2);
  expect_equal(run(in_stages(four, {"3", 3, kOneByOne}), data), run(alone, data));
}

// By the norm of all: a stage that skipped alone would go apart from one stage's bits.
TEST(StagesRun, SkipsAStepOnAllStages) {
  TrainOptions options = with_micro_batches(normed(plain_options(1)), 4);
  options.recipe.precision = Precision::f16;
  options.execution.emulate_precision = true;
  const data::Splits data = formula_splits(200);
  const auto run_from = [&](const TrainOptions& changed, int ranks) {
    const auto begin = [](TrainLoop& loop, Device&, int) {
      loop.set_loss_scale({.scale = 33554432.0 * 1024});
    };
    return run(make_run_setup(changed, data, ranks), {}, begin);
  };
  const Outcome expected = run_from(options, 1);
  EXPECT_TRUE(expected.steps.front().skipped);
  const Outcome actual = run_from(in_stages(options, {"3", 3, kOneByOne}), 3);
  expect_equal(actual, expected);
  for (std::size_t i = 0; i < expected.steps.size(); ++i) {
    EXPECT_EQ(actual.steps[i].skipped, expected.steps[i].skipped);
    EXPECT_EQ(actual.steps[i].loss_scale, expected.steps[i].loss_scale);
  }
}

TEST(CudaStages, OnOneGpuHaveTheBitsOfOneStageThere) {
  SKIP_WITHOUT_GPU();
  for (const int replicas : {1, 2}) {
    SCOPED_TRACE(replicas);
    TrainOptions options = with_micro_batches(normed(plain_options(replicas)), 4);
    for (DeviceId& device : options.execution.devices) device.kind = DeviceKind::cuda;
    options.execution.graph = false;
    options.execution.deterministic = true;
    const data::Splits data = formula_splits(150);
    const Outcome expected = run(options, data);
    for (const Way& way : {Way{"2", 2, kOneByOne}, Way{"3", 3, kGpipe}, Way{"2", 2, kNaive}}) {
      SCOPED_TRACE(in_words(way));
      TrainOptions cut = in_stages(options, way);
      for (DeviceId& device : cut.execution.devices) device.kind = DeviceKind::cuda;
      expect_equal(run(cut, data), expected);
      cut.execution.recompute = true;
      expect_equal(run(cut, data), expected);
    }
  }
}

/// The stand-in has two GPUs while it lives, with so much memory each.
class TwoGpus {
 public:
  explicit TwoGpus(int mebibytes) {
    setenv("RINGLET_STAND_IN_GPUS", "2", 1);  // NOLINT(concurrency-mt-unsafe)
    const std::string memory = std::to_string(mebibytes);
    setenv("RINGLET_STAND_IN_MEMORY", memory.c_str(), 1);  // NOLINT(concurrency-mt-unsafe)
  }
  ~TwoGpus() {
    unsetenv("RINGLET_STAND_IN_GPUS");    // NOLINT(concurrency-mt-unsafe)
    unsetenv("RINGLET_STAND_IN_MEMORY");  // NOLINT(concurrency-mt-unsafe)
  }
  TwoGpus(const TwoGpus&) = delete;
  TwoGpus& operator=(const TwoGpus&) = delete;
};

TEST(CudaStages, TrainWhatDoesNotFitOneDevice) {
  SKIP_WITHOUT_GPU();
  if (!on_stand_in()) GTEST_SKIP() << "only the stand-in's GPUs can be as small as wanted";
  constexpr int kBatch = 64, kEnough = 4096;  // samples, mebibytes
  TrainOptions options = with_micro_batches(plain_options(1), 2);
  options.recipe.model = "resnet20";
  options.recipe.batch_size = kBatch;
  options.execution.devices[0] = {DeviceKind::cuda, 0};
  options.execution.graph = false;
  options.execution.deterministic = true;
  options.execution.measures_stages = false;
  const data::Splits data = formula_splits(kBatch);
  Outcome expected;
  {
    const TwoGpus large(kEnough);
    expected = run(options, data);
  }
  // What a pass of the whole model has, and nothing for anything else.
  CutModel whole = make_cut_model(make_run_setup(options, data, 1).replica);
  const TwoGpus small(static_cast<int>(plan_stage(whole, 0, whole.units.count()).pass >> 20));
  try {
    (void)run(options, data);
    ADD_FAILURE() << "one stage was trained";
  } catch (const Error& error) {
    const std::string text = error.what();
    EXPECT_NE(text.find("the activations of a batch of "), std::string::npos) << text;
    EXPECT_NE(text.find("--stages 2 on two devices"), std::string::npos) << text;
  }
  TrainOptions cut = in_stages(options, {"conv1..layer1,layer2..fc", 2, kNaive});
  cut.execution.devices[1] = {DeviceKind::cuda, 1};
  expect_equal(run(cut, data), expected);
}

TEST(CudaStages, SayThatNoStepIsCaptured) {
  SKIP_WITHOUT_GPU();
  struct Start final : RunListener {
    void started(const StartReport& report) override { why = report.why_no_graph; }
    std::string why = "nothing";
  };
  for (const bool graph : {true, false}) {
    TrainOptions options = in_stages(plain_options(1), {"2", 2, kOneByOne});
    for (DeviceId& device : options.execution.devices) device.kind = DeviceKind::cuda;
    options.execution.graph = graph;
    Start start;
    (void)run(options, formula_splits(64), {&start});
    EXPECT_EQ(start.why, graph ? "since the model is in stages" : "");
  }
}

namespace {

TrainOptions in_two_stages() {
  return in_stages(with_micro_batches(normed(plain_options(1)), 4), {"2", 2, kOneByOne});
}

/// Process 0 of two, which keeps what it tells process 1; or process 1, which is told that.
class Told : public comm::Group {
 public:
  Told(int process, std::vector<std::string>& words) : Group(process, 1, 2), words_(words) {}
  int channels() const override { return 1; }
  comm::Transport& channel(int, int) override { throw Error("no rank runs"); }
  void open_channels(int) override {}
  bool abort(int, const std::string&) noexcept override { return false; }
  std::string agree(const std::string&, const std::optional<std::string>& mine, double) override {
    if (mine) words_.push_back(*mine);
    return words_.at(next_++);
  }
  std::shared_ptr<void> share(const std::string&, std::int64_t, double) override { return {}; }

 private:
  std::vector<std::string>& words_;
  std::size_t next_ = 0;
};

std::vector<double> costs_of(const RunSetup& setup) {
  std::vector<double> costs;
  for (const StageRow& row : setup.stages->forecast.stages) {
    costs.insert(costs.end(), {row.forward, row.backward, row.update});
  }
  return costs;
}

}  // namespace

TEST(StagesRun, AreCutByMeasuredCostsOrByPlannedOnes) {
  TrainOptions options = in_two_stages();
  const data::Splits data = formula_splits(150);
  EXPECT_TRUE(make_run_setup(options, data, 2).stages->forecast.measured);
  options.execution.measures_stages = false;
  const RunSetup planned = make_run_setup(options, data, 2);
  EXPECT_FALSE(planned.stages->forecast.measured);
  CutModel model = make_cut_model(planned.replica);
  const nn::Stages cuts = balanced_stages(model, plan_costs(model), 2, {.sizes = {8, 8, 8, 8}});
  EXPECT_EQ(planned.stages->cuts.back().layers, cuts.back().layers);
  EXPECT_EQ(planned.stages->forecast.stages.front().held, 2);
  options.execution.recompute = true;
  const RunSetup again = make_run_setup(options, data, 2);
  EXPECT_LT(again.stages->forecast.stages.front().bytes(),
            planned.stages->forecast.stages.front().bytes());
}

// No two measurements agree to the last bit.
TEST(StagesRun, AreCutByWhatTheFirstProcessMeasured) {
  TrainOptions options = in_two_stages();
  options.execution.in_processes = true;
  options.execution.devices.resize(1);
  const data::Splits data = formula_splits(150);
  std::vector<std::string> words;
  Told first(0, words), second(1, words);
  const RunSetup mine = make_run_setup(options, data, 2, {}, &first);
  const RunSetup theirs = make_run_setup(options, data, 2, {}, &second);
  EXPECT_TRUE(mine.stages->forecast.measured);
  EXPECT_EQ(costs_of(theirs), costs_of(mine));
  EXPECT_FALSE(make_run_setup(options, data, 2).stages->forecast.measured);  // nobody tells it
}

// By naive one stage works at a time, so that two cannot be busy for more than the epoch.
TEST(StagesRun, TellTheirBubbleEachEpoch) {
  const testing::TemporaryDirectory folder;
  TrainOptions options = in_two_stages();
  options.recipe.epochs = 2;
  options.execution.pipeline = kNaive;
  const RunSetup setup = make_run_setup(options, formula_splits(150), 2);
  MetricsWriter metrics(folder / "m.jsonl", 0, 3);
  const Outcome outcome = run(setup, {&metrics});
  ASSERT_EQ(outcome.epochs.size(), 2U);
  for (const EpochReport& epoch : outcome.epochs) {
    ASSERT_TRUE(epoch.stages.has_value());
    EXPECT_GE(epoch.stages->bubble, .5);
    EXPECT_LT(epoch.stages->bubble, 1);
    EXPECT_EQ(epoch.stages->predicted, setup.stages->forecast.step.bubble);
    EXPECT_GT(epoch.stages->waited, 0);
    EXPECT_LE(epoch.stages->waited, 1);
  }
  const StagesReport& last = *outcome.epochs.back().stages;
  const std::string text = testing::read_file(folder / "m.jsonl");
  const nlohmann::json line = nlohmann::json::parse(text.substr(text.rfind("{\"kind\"")));
  EXPECT_EQ(line.at("bubble"), last.bubble);
  EXPECT_EQ(line.at("predicted_bubble"), last.predicted);
  EXPECT_EQ(line.at("waiting_stage"), last.stage);
  EXPECT_EQ(line.at("waiting_share"), last.waited);
  EXPECT_EQ(line.at("waiting_for"), last.reason);
  EXPECT_EQ(line.at("waiting_for_share"), last.of_reason);
  const Metrics read = read_metrics(folder / "m.jsonl");
  ASSERT_TRUE(read.epochs.back().stages.has_value());
  EXPECT_EQ(read.epochs.back().stages->reason, last.reason);
  EXPECT_EQ(read.epochs.back().stages->stages, last.stages);
  std::vector<double> steps;
  for (const StepReport& step : outcome.steps) {
    if (step.epoch == 2) steps.push_back(step.seconds);
  }
  std::sort(steps.begin(), steps.end());
  EXPECT_EQ(line.at("median_step_seconds"), steps[steps.size() / 2]);
  EXPECT_EQ(line.at("predicted_step_seconds"), setup.stages->forecast.step.seconds);
  EXPECT_FALSE(run(plain_options(1), formula_splits(150)).epochs.front().stages.has_value());
}

TEST(StagesRun, MeasureAnOptimizerOfOnesOwn) {
  TrainOptions options = in_two_stages();
  const auto made = std::make_shared<std::atomic<int>>(0);  // ranks are threads
  options.make_optimizer = [made](Device& device, const nn::Parameters& parameters,
                                  const Recipe& recipe) {
    ++*made;
    return make_optimizer(device, parameters, recipe);
  };
  (void)make_run_setup(options, formula_splits(150), 2);
  EXPECT_GT(*made, 2);
}

TEST(StagesRun, AreRefusedWhereOneDoesNotFit) {
  TrainOptions options = in_two_stages();
  const auto stages = make_run_setup(options, formula_splits(150), 2).stages;
  const std::int64_t one = stages->forecast.stages[0].bytes(),
                     other = stages->forecast.stages[1].bytes();
  const int largest = one > other ? 0 : 1;
  require_fit(stages->forecast, {{"cuda:0", one, {0}}, {"cuda:1", other, {1}}});
  require_fit(stages->forecast, {{"cuda:0", one + other, {1, 0}}});
  const auto refused = [&](const std::vector<StageRoom>& rooms) {
    try {
      require_fit(stages->forecast, rooms);
    } catch (const ContractError& error) {
      return std::string(error.what());
    }
    return std::string();
  };
  EXPECT_EQ(refused({{"cuda:0", one, {0}}, {"cuda:1", other - 1, {1}}})
                .rfind("--stages: stage 1 (" + stages->cuts[1].layers + ") needs ", 0),
            0U);
  EXPECT_EQ(refused({{"cuda:0", one + other - 1, {1, 0}}})
                .rfind(fmt::format("--stages: stage {} ({}) needs ", largest,
                                   stages->cuts[static_cast<std::size_t>(largest)].layers),
                       0),
            0U);
}

TEST(CudaStages, OnAGpuAndAProcessorLearnWhatOneDeviceLearns) {
  SKIP_WITHOUT_GPU();
  for (const int replicas : {1, 2}) {
    TrainOptions options = with_micro_batches(normed(plain_options(replicas)), 4);
    options.execution.deterministic = true;
    options.recipe.clip_norm = 0.5;  // by the squares of both kinds
    const data::Splits data = formula_splits(150);
    const Outcome expected = run(options, data);
    for (const std::size_t on_gpu : {0U, 1U}) {  // either stage
      SCOPED_TRACE(std::to_string(replicas) + " replicas, stage " + std::to_string(on_gpu));
      TrainOptions cut = in_stages(options, {"2", 2, kOneByOne});
      const auto per_stage = static_cast<std::size_t>(replicas);
      for (std::size_t i = 0; i < per_stage; ++i) {
        cut.execution.devices[on_gpu * per_stage + i].kind = DeviceKind::cuda;
      }
      const Outcome outcome = run(cut, data);
      ASSERT_EQ(outcome.steps.size(), expected.steps.size());
      for (std::size_t i = 0; i < expected.steps.size(); ++i) {
        EXPECT_NEAR(outcome.losses()[i], expected.losses()[i], 1e-4) << i;
      }
      EXPECT_LT(distance(outcome.state, expected.state), 1e-4);
      expect_equal(run(cut, data), outcome);
    }
  }
}

namespace {

std::string error_of(const RunSetup& setup) {
  try {
    (void)train(setup, {});
  } catch (const std::exception& error) {
    return error.what();
  }
  return "";
}

}  // namespace

TEST(StagesRun, NamesTheStageThatFails) {
  TrainOptions options = in_stages(normed(plain_options(2)), {"conv1..relu,block..fc", 2, kNaive});
  options.execution.measures_stages = false;  // that would fail before there are stages
  options.make_optimizer = [](Device& device, const nn::Parameters& parameters,
                              const Recipe& recipe) -> std::unique_ptr<Optimizer> {
    for (const nn::Parameter* parameter : parameters.registry().parameters) {
      if (parameter->name == "fc.weight") throw Error("there is no optimiser");
    }
    return make_optimizer(device, parameters, recipe);
  };
  const std::string error = error_of(make_run_setup(options, formula_splits(64), 4));
  EXPECT_EQ(error.rfind("stage 1 (block .. fc), replica ", 0), 0U) << error;  // either of them
  EXPECT_NE(error.find(": there is no optimiser"), std::string::npos) << error;
}

TEST(StagesRun, FindsTheFirstBrokenNumbersInTheStageThatHasThem) {
  for (const char* schedule : {"naive", "1f1b"}) {
    TrainOptions options = in_stages(with_micro_batches(plain_options(1), 2),
                                     {"2", 2, parse_pipeline_schedule(schedule)});
    // By measured times, on a busy machine, the first stage may have conv1 alone, without " .. ".
    options.execution.measures_stages = false;
    options.recipe.lr = 1e30;
    const std::string error = error_of(make_run_setup(options, formula_splits(256), 2));
    EXPECT_NE(error.find("the first broken numbers are in"), std::string::npos) << error;
    EXPECT_NE(error.find("(stage 0 (conv1 .. "), std::string::npos) << error;
  }
}

}  // namespace ringlet::train
