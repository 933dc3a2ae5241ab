// Evaluation counts every sample once, and its numbers do not depend on who does the work.
#include "train/loop/evaluator.h"

#include <gtest/gtest.h>

#include <bit>

#include "tests/support/files.h"
#include "tests/train/runs.h"

namespace ringlet::train {
namespace {

class Evaluate : public ::testing::TestWithParam<LayoutChoice> {};

TEST_P(Evaluate, TheNumberOfReplicasChangesNoBit) {
  const testing::TemporaryDirectory folder;
  const data::Splits data{formula_dataset(128), formula_dataset(1130, 5000)};  // 4 passes and a bit
  TrainOptions options = plain_options(1);
  options.execution.layout = GetParam();
  options.files.out = folder.path();
  run(options, data);

  const auto evaluation = [&](int replicas) {
    options.execution.devices.assign(static_cast<std::size_t>(replicas), DeviceId{});
    return evaluate(make_run_setup(options, data, replicas), folder / "model.safetensors");
  };
  const Evaluation one = evaluation(1);
  EXPECT_EQ(one.samples, 1130);
  EXPECT_GT(one.loss, 0.5);
  std::vector<std::int64_t> of_class(10);
  for (const std::int32_t label : data.test->labels()) ++of_class[static_cast<std::size_t>(label)];
  std::int64_t right = 0;
  for (std::size_t k = 0; k < of_class.size(); ++k) {
    EXPECT_EQ(one.classes[k].samples, of_class[k]);
    right += one.classes[k].right;
  }
  EXPECT_EQ(one.right, right);
  for (const int replicas : {2, 3, 4, 7}) {
    const Evaluation shared = evaluation(replicas);
    EXPECT_EQ(std::bit_cast<std::uint64_t>(shared.loss), std::bit_cast<std::uint64_t>(one.loss))
        << replicas << " replicas";
    EXPECT_EQ(shared.samples, one.samples);
    EXPECT_EQ(shared.right, one.right);
  }
}

std::string name_of_case(const ::testing::TestParamInfo<LayoutChoice>& test) {
  if (test.param == LayoutChoice::automatic) return "automatic";
  return test.param == LayoutChoice::nchw ? "nchw" : "lanes";
}

INSTANTIATE_TEST_SUITE_P(Layouts, Evaluate,
                         ::testing::Values(LayoutChoice::automatic, LayoutChoice::nchw,
                                           LayoutChoice::lanes),
                         name_of_case);

TEST(Evaluate, TheLossIsTheMeanOverTheSamples) {
  const testing::TemporaryDirectory folder;
  TrainOptions options = plain_options(1);
  options.recipe.lr = 0;  // the loss on the training data is that of the start
  options.recipe.batch_size = 600;
  options.files.out = folder.path();
  const auto samples = formula_dataset(600);
  const Outcome outcome = run(options, {samples, samples});
  ASSERT_EQ(outcome.epochs.size(), 1u);
  EXPECT_NEAR(outcome.epochs[0].test.loss, outcome.epochs[0].train_loss, 1e-5);
  EXPECT_NEAR(outcome.epochs[0].test.loss, outcome.steps[0].loss, 1e-5);
}

TEST(Evaluate, PassesAreLargeOnAGpu) {
  const auto pass = [](DeviceKind kind) {
    TrainOptions options = plain_options(1);
    options.execution.devices = {{kind, 0}};
    return make_run_setup(options, formula_splits(3000), 1).evaluation_batch;
  };
  EXPECT_EQ(pass(DeviceKind::cpu), 250);
  EXPECT_EQ(pass(DeviceKind::cuda), 2000);
}

TEST(Evaluate, AMissingFileIsNamed) {
  const TrainOptions options = plain_options(2);
  const RunSetup setup = make_run_setup(options, formula_splits(64), 2);
  EXPECT_TRUE(testing::says(
      testing::message_of<Error>([&] { evaluate(setup, "/no/such/model.safetensors"); }),
      {"/no/such/model.safetensors"}));
}

}  // namespace
}  // namespace ringlet::train
