// A model whose last matrix is cut by rows over the ranks (nn/placement.h): what it learns, saves
// and resumes does not depend on how many they are.
#include <gtest/gtest.h>

#include <cmath>
#include <filesystem>
#include <limits>
#include <memory>
#include <string>
#include <tuple>
#include <vector>

#include "data/memory_dataset.h"
#include "kernels/elementwise.h"
#include "kernels/host_copy.h"
#include "nn/layers/batch_norm2d.h"
#include "nn/layers/linear.h"
#include "nn/layers/sequential.h"
#include "nn/layers/sharded_linear.h"
#include "nn/layers/stateless.h"
#include "nn/ops/sharded_linear.h"
#include "tests/comm/processes.h"
#include "tests/support/files.h"
#include "tests/support/tensors.h"
#include "tests/train/runs.h"
#include "train/files/load_model.h"
#include "train/learner.h"
#include "train/sync/gradient_squares.h"

namespace ringlet::train {
namespace {

constexpr int kSide = 5, kWidth = 12;

/// Images that look like their class, with noise.
std::shared_ptr<const data::Dataset> images_of(std::int64_t count, int classes,
                                               std::uint32_t seed) {
  const auto noise = test::random_floats(count * kSide * kSide, seed, 0, 60);
  std::vector<std::uint8_t> images;
  std::vector<std::int32_t> labels;
  for (std::int64_t i = 0; i < count; ++i) {
    const auto label = static_cast<std::int32_t>((7 * i + 3 * (i / 5)) % classes);
    labels.push_back(label);
    for (int k = 0; k < kSide * kSide; ++k) {
      const int pattern = (k * (label + 2)) % 7 < 3 ? 150 : 0;
      images.push_back(static_cast<std::uint8_t>(
          pattern + noise[static_cast<std::size_t>(i * kSide * kSide + k)]));
    }
  }
  data::DatasetInfo info{
      .name = "patterns", .channels = 1, .height = kSide, .width = kSide, .target_names = {}};
  for (int k = 0; k < classes; ++k) info.target_names.push_back(std::to_string(k));
  return std::make_shared<const data::MemoryDataset>(info, std::move(images), std::move(labels));
}

/// Classification by a softmax over the ranks.
class Sharded final : public Task {
 public:
  explicit Sharded(int classes) : classes_(classes) {}
  nn::Variable loss(const nn::Variable& output, const nn::Batch& batch, bool,
                    const View& sum) const override {
    return nn::sharded_cross_entropy(output, batch[nn::kTargets], classes_, sum);
  }

 private:
  int classes_;
};

std::unique_ptr<nn::Layer> make_net(const nn::ModelInput& input) {
  auto net = std::make_unique<nn::Sequential>();
  net->add<nn::Flatten>("flatten");
  net->add<nn::Linear>("fc", kSide * kSide, kWidth);
  net->add<nn::ReLU>("relu");
  net->add<nn::ShardedLinear>("head", kWidth, input.outputs);
  return net;
}

/// Splits of 90 training and 30 test samples, and options to train on them.
struct Trial {
  explicit Trial(TrainOptions the_options, int the_classes = 10)
      : options(std::move(the_options)),
        data{images_of(90, the_classes, 1), images_of(30, the_classes, 2)} {
    options.recipe.model = "sharded";
    options.recipe.batch_size = 40;  // the last one of an epoch has 10
    options.recipe.epochs = 4;
    options.recipe.lr = 0.1;
    options.make_model = make_net;
    options.task = std::make_shared<const Sharded>(the_classes);
    options.execution.check_replicas = 1;
  }
  Outcome to_the_end(const std::vector<RunListener*>& listeners = {}) {
    return run(options, data, listeners);
  }
  /// The bytes of OUT/model.safetensors.
  std::string model_file() {
    const testing::TemporaryDirectory folder;
    options.files.out = folder.path();
    to_the_end();
    return testing::read_file(folder / "model.safetensors");
  }

  TrainOptions options;
  data::Splits data;
};

class NormWatcher : public RunListener {
 public:
  bool wants_grad_norm() const override { return true; }
  void step_done(const StepReport& report) override { norms.push_back(report.grad_norm); }
  std::vector<double> norms;
};

void expect_near(const std::vector<double>& actual, const std::vector<double>& expected,
                 double most) {
  ASSERT_EQ(actual.size(), expected.size());
  for (std::size_t i = 0; i < actual.size(); ++i) {
    EXPECT_NEAR(actual[i], expected[i], most) << "step " << i;
  }
}

/// Three classes have fewer rows than four ranks; ten are uneven on three and four.
class PlacementRun : public ::testing::TestWithParam<int> {};
INSTANTIATE_TEST_SUITE_P(Classes, PlacementRun, ::testing::Values(3, 10));

TEST_P(PlacementRun, LearnsTheSameOnAnyNumberOfRanks) {
  const Outcome one = Trial(plain_options(1), GetParam()).to_the_end();
  EXPECT_LT(one.epochs.back().train_loss, 0.98 * one.epochs.front().train_loss);
  for (const int ranks : {2, 3, 4}) {
    SCOPED_TRACE(ranks);
    for (const auto layout : {LayoutChoice::nchw, LayoutChoice::lanes}) {
      Trial more(plain_options(ranks), GetParam());
      more.options.execution.layout = layout;
      more.options.execution.overlap = layout == LayoutChoice::lanes;
      const Outcome outcome = more.to_the_end();
      expect_near(outcome.losses(), one.losses(), 1e-5);
      EXPECT_NEAR(outcome.result.test.loss, one.result.test.loss, 1e-5);
    }
  }
}

TEST_P(PlacementRun, ExactModeHasTheSameBytesOnAnyNumberOfRanks) {
  for (const char* optimizer : {"sgd", "adamw"}) {
    const testing::TemporaryDirectory folder;
    const auto learnt = [&](int ranks) {
      Trial made(exact_options(ranks), GetParam());
      made.options.recipe.epochs = 2;
      made.options.recipe.optimizer = optimizer;
      made.options.recipe.nesterov = made.options.recipe.optimizer == "sgd";
      made.options.recipe.momentum = made.options.recipe.nesterov ? 0.9 : 0;
      made.options.recipe.accumulate = 2;
      made.options.recipe.clip_norm = 0.02;
      made.options.files.out = folder.path();
      const Outcome outcome = made.to_the_end();
      return std::tuple(outcome.losses(), outcome.result.test.loss,
                        testing::read_file(folder / "model.safetensors"));
    };
    const auto one = learnt(1);
    for (const int ranks : {2, 4}) EXPECT_TRUE(learnt(ranks) == one) << optimizer << ranks;
  }
}

/// All numbers of ranks could agree on a sum that is none of the shards'.
TEST(Placement, ExactModeLearnsWhatIsLearntWithoutIt) {
  Trial exact(exact_options(2)), plain(exact_options(1));
  plain.options.recipe.exact = false;
  expect_near(exact.to_the_end().losses(), plain.to_the_end().losses(), 1e-5);
}

std::unique_ptr<nn::Layer> make_normed_net(const nn::ModelInput& input) {
  auto net = std::make_unique<nn::Sequential>();
  net->add<nn::BatchNorm2d>("norm", 1);
  net->add<nn::Flatten>("flatten");
  net->add<nn::ShardedLinear>("head", kSide * kSide, input.outputs);
  return net;
}

/// A rank without samples runs the model on a stand-in, of which running statistics know nothing.
TEST(Placement, ExactModeTakesFewerSamplesThanShards) {
  for (const auto& net : {make_net, make_normed_net}) {
    const auto exact = [&](int ranks) {
      Trial made(exact_options(ranks));
      made.options.make_model = net;
      made.options.recipe.batch_size = 5;
      made.options.max_steps = 6;
      return made.model_file();
    };
    const std::string one = exact(1);
    EXPECT_TRUE(exact(2) == one);
    EXPECT_TRUE(exact(4) == one);
  }
}

TEST(Placement, AStandInIsNoneOfTheRunningStatistics) {
  const auto running = [](int ranks) {
    Trial made(plain_options(ranks));
    made.options.make_model = make_normed_net;
    made.options.recipe.batch_size = 3;  // of one sample each, on four ranks of three
    made.options.max_steps = 4;
    const HostState state = made.to_the_end().state;
    EXPECT_EQ(state.counters, std::vector<std::int64_t>{4});
    return state.buffers.at(0);
  };
  const std::vector<float> one = running(1), four = running(4);
  EXPECT_NEAR(four[0], one[0], 1e-5);
}

TEST(Placement, SavesOnFourRanksAndResumesOnThree) {
  const testing::TemporaryDirectory folder;
  for (const char* optimizer : {"sgd", "adamw"}) {
    std::filesystem::create_directory(folder / optimizer);
    const auto plain = [&](int ranks) {
      Trial made(plain_options(ranks));
      made.options.recipe.optimizer = optimizer;
      made.options.recipe.momentum = std::string(optimizer) == "sgd" ? 0.9 : 0;
      made.options.files.out = folder / optimizer;
      return made;
    };
    Trial whole = plain(1);
    whole.options.files.out.clear();
    const std::vector<double> losses = whole.to_the_end().losses();
    Trial four = plain(4);
    four.options.max_steps = 4;
    four.to_the_end();
    Trial three = plain(3);
    const RunSetup setup =
        make_run_setup(three.options, three.data, 3, read_state(three.options.files.out));
    expect_near(run(setup).losses(), {losses.begin() + 4, losses.end()}, 1e-5);
  }
}

TEST(Placement, ExactModeResumesOnAnotherNumberOfRanksBitForBit) {
  const testing::TemporaryDirectory folder;
  const std::string whole = Trial(exact_options(1)).model_file();
  Trial four(exact_options(4)), two(exact_options(2));
  four.options.files.out = two.options.files.out = folder.path();
  four.options.max_steps = 4;
  four.to_the_end();
  run(make_run_setup(two.options, two.data, 2, read_state(folder.path())));
  EXPECT_TRUE(testing::read_file(folder / "model.safetensors") == whole);
}

TEST(Placement, ProcessesWriteWhatThreadsWrite) {
  const std::string threads = Trial(exact_options(4)).model_file();
  const testing::TemporaryDirectory folder;
  comm::Processes processes({2, 2});
  comm::run_ranks(2, [&](int process) {
    Trial two(exact_options(2));
    two.options.execution.in_processes = true;
    two.options.execution.transport = TransportChoice::shm;
    two.options.files.out = folder.path();
    train(processes.group(process), make_run_setup(two.options, two.data, 4), {});
  });
  EXPECT_TRUE(testing::read_file(folder / "model.safetensors") == threads);
}

/// Files have whole tensors, whoever has their rows: one rank evaluates what four have written.
TEST(Placement, FilesHaveWholeTensors) {
  const testing::TemporaryDirectory folder;
  Trial four(plain_options(4)), one(plain_options(1));
  four.options.files.out = folder.path();
  const Outcome outcome = four.to_the_end();
  for (Trial* made : {&one, &four}) {
    const int ranks = static_cast<int>(made->options.execution.devices.size());
    RunSetup setup = make_run_setup(made->options, made->data, ranks);
    for (const std::int64_t batch : {30, 4}) {  // of 4 each rank has passes of its own
      setup.evaluation_batch = batch;
      EXPECT_NEAR(evaluate(setup, folder / "model.safetensors").loss, outcome.result.test.loss,
                  1e-6)
          << ranks << " ranks, passes of " << batch;
    }
  }
}

TEST(Placement, StartsFromAFileOnAnyNumberOfRanks) {
  const testing::TemporaryDirectory folder;
  std::filesystem::create_directory(folder / "first");
  Trial first(plain_options(1));
  first.options.files.out = folder / "first";
  first.to_the_end();
  const auto from_file = [&](int ranks) {
    Trial made(plain_options(ranks));
    made.options.files.init = folder / "first";
    return made.to_the_end().losses();
  };
  expect_near(from_file(3), from_file(1), 1e-5);
}

// One rank has all rows, and no need of another way to the norm.
TEST(Placement, TheNormIsOfAllRows) {
  const auto norms = [](TrainOptions options) {
    NormWatcher watcher;
    Trial(std::move(options)).to_the_end({&watcher});
    return watcher.norms;
  };
  const std::vector<double> one = norms(plain_options(1));
  for (const int ranks : {2, 3, 4}) expect_near(norms(plain_options(ranks)), one, 1e-5);
  expect_near(norms(exact_options(4)), norms(exact_options(1)), 0);
}

TEST(Placement, ClippingSeesAllRows) {
  const auto clipped = [](int ranks) {
    Trial made(plain_options(ranks));
    made.options.recipe.clip_norm = 0.02;
    return made.to_the_end().losses();
  };
  const std::vector<double> one = clipped(1);
  for (const int ranks : {3, 4}) expect_near(clipped(ranks), one, 1e-5);
  EXPECT_GT(std::abs(one.back() - Trial(plain_options(1)).to_the_end().losses().back()), 1e-3);
}

/// A number of one rank's rows, which no other rank has.
TEST(Placement, ABrokenGradientOfOneRankIsSeenByAll) {
  Trial three(plain_options(3));
  const RunSetup setup = make_run_setup(three.options, three.data, 3);
  run_replicas(setup.options.execution, [&](Device& device, comm::Communicator& all) {
    Replica replica(device, setup.replica, nullptr, {.rank = all.rank(), .ranks = all.size()});
    const nn::Parameters& parameters = replica.parameters();
    const nn::Plan& plan = replica.plan();
    fill(device.compute(), 0, parameters.gradients());
    fill(device.compute(), 2, parameters.gradients().slice(0, 1));
    fill(device.compute(), static_cast<float>(all.rank() + 1),
         parameters.gradients().slice(plan.replicated(), plan.replicated() + 1));
    GradientSquares squares(device, all, nullptr, parameters);
    const Tensor norm(device, {1});
    squares.measure(norm, {});
    EXPECT_FLOAT_EQ(read_scalar(device.compute(), norm), std::sqrt(4.0F + 1 + 4 + 9));
    if (all.rank() == 2) {
      fill(device.compute(), INFINITY,
           parameters.gradients().slice(plan.replicated() + 1, plan.replicated() + 2));
    }
    squares.measure(norm, {});
    EXPECT_TRUE(std::isinf(read_scalar(device.compute(), norm))) << all.rank();
  });
}

TEST(Placement, UnderF16AllRanksSkipTheSameSteps) {
  const auto skips = [](int ranks) {
    Trial made(plain_options(ranks));
    made.options.recipe.precision = Precision::f16;
    made.options.execution.emulate_precision = true;
    const RunSetup setup = make_run_setup(made.options, made.data, ranks);
    const Outcome outcome = run(setup, {}, [](TrainLoop& loop, Device&, int) {
      loop.set_loss_scale({.scale = std::ldexp(1.0, 127)});
    });
    std::vector<double> skipped;
    for (const StepReport& step : outcome.steps) skipped.push_back(step.skipped ? 1 : 0);
    EXPECT_EQ(skipped.front(), 1);
    return skipped;
  };
  EXPECT_EQ(skips(3), skips(1));
}

// One rank does it alone: where it met others, it would wait for them.
TEST(Placement, RehearsesWithoutTheOtherRanks) {
  Trial two(exact_options(2));
  const RunSetup setup = make_run_setup(two.options, two.data, 2);
  run_replicas(setup.options.execution, [&](Device& device, comm::Communicator& all) {
    TrainStep step(device, all, setup.replica, {.shards = 4});
    if (all.rank() == 0)
      step.rehearse({.training = {5, 2}, .evaluation = {30}, .accumulates = true});
    all.barrier(device.communication(), "the end");
    EXPECT_TRUE(step.is_sharded());
  });
}

// The others need its rows to the end.
TEST(Placement, AnEvaluationThatOneRankLeavesEndsForAll) {
  Trial three(plain_options(3));
  const RunSetup setup = make_run_setup(three.options, three.data, 3);
  run_replicas(setup.options.execution, [&](Device& device, comm::Communicator& all) {
    TrainStep step(device, all, setup.replica, {});
    step.replica().parameters().initialize(1);
    Evaluator evaluator(step.replica(), all, setup.data.test, setup.loader, 8, step.axis());
    const Tested whole = evaluator.run();
    EXPECT_TRUE(whole.result && !whole.stop_wished);
    const Tested left = evaluator.run([&all] { return all.rank() == 1; });
    EXPECT_TRUE(!left.result && left.stop_wished);
  });
}

TEST(Placement, BucketsAreOfWhatAllRanksHave) {
  Trial two(plain_options(2));
  const RunSetup setup = make_run_setup(two.options, two.data, 2);
  const auto device = open_device({});
  Replica replica(*device, setup.replica, nullptr, {.rank = 1, .ranks = 2});
  const nn::Plan& plan = replica.plan();
  EXPECT_EQ(plan.parameters.back().name, "head.weight");
  EXPECT_EQ(plan.sharded, 64);  // 5 rows of 12, in whole cache lines
  EXPECT_EQ(plan.parameter_count, kSide * kSide * kWidth + kWidth + 10 * kWidth);
  std::int64_t last = 0;
  for (const Bucket& bucket : plan_buckets(plan, {})) {
    if (bucket.name == "statistics") {
      EXPECT_EQ(bucket.begin, plan.elements);
    } else {
      EXPECT_EQ(bucket.begin, last);
      last = bucket.end;
    }
  }
  EXPECT_EQ(last, plan.replicated());
}

TEST(Placement, ALearnerOfSeveralRanksRefusesIt) {
  Execution execution;
  execution.devices.assign(2, DeviceId{});
  const std::string message = testing::message_of<Error>([&] {
    run_replicas(execution, [](Device& device, comm::Communicator& all) {
      Learner(device, all, make_net,
              {.input = {1, kSide, kSide, 10}, .task = std::make_shared<const Sharded>(10)});
    });
  });
  EXPECT_TRUE(testing::says(message, {"rows are cut over ranks", "train::train()"})) << message;
}

}  // namespace
}  // namespace ringlet::train
