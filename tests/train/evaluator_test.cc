// Evaluation counts every sample once, and its numbers do not depend on who does the work.
#include "train/loop/evaluator.h"

#include <gtest/gtest.h>

#include <atomic>
#include <bit>
#include <chrono>
#include <map>
#include <memory>
#include <mutex>
#include <thread>

#include "tests/support/files.h"
#include "tests/train/runs.h"
#include "train/task/classification.h"

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
  for (const std::int32_t label : data.test->targets()) ++of_class[static_cast<std::size_t>(label)];
  const std::vector<ClassCount> classes = class_counts(one);
  ASSERT_EQ(classes.size(), of_class.size());
  std::int64_t right = 0;
  for (std::size_t k = 0; k < of_class.size(); ++k) {
    EXPECT_EQ(classes[k].samples, of_class[k]);
    right += classes[k].right;
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

/// The formula's samples, of which each of the second half takes long to read once `slow` is set.
class SlowHalf final : public data::Dataset {
 public:
  SlowHalf(const data::Dataset& samples, bool photographs)
      : Dataset({.name = "slow half",
                 .channels = samples.channels(),
                 .height = samples.height(),
                 .width = samples.width(),
                 .target_names = samples.target_names(),
                 .photographs = photographs},
                {samples.targets().begin(), samples.targets().end()}),
        samples_(samples) {}

  void read(std::int64_t index, std::span<std::uint8_t> out) const override {
    samples_.read(index, out);
    if (!slow || index < size() / 2) return;
    std::this_thread::sleep_for(std::chrono::milliseconds(8));
    const std::lock_guard lock(mutex_);
    ++slow_reads_[std::this_thread::get_id()];
  }
  /// Of each thread that had any.
  std::vector<int> slow_reads() const {
    const std::lock_guard lock(mutex_);
    std::vector<int> reads;
    for (const auto& [thread, count] : slow_reads_) reads.push_back(count);
    return reads;
  }

  std::atomic<bool> slow{false};

 private:
  const data::Dataset& samples_;
  mutable std::mutex mutex_;
  mutable std::map<std::thread::id, int> slow_reads_;
};

/// Two passes, the second of which takes two seconds, where a rank waits for half a second.
TEST(Evaluate, ARankThatReadsForLongIsNotMissing) {
  const auto samples = formula_dataset(500, 5000);
  const auto test = std::make_shared<SlowHalf>(*samples, false);
  TrainOptions options = plain_options(2);
  options.execution.comm_timeout = 0.5;
  const RunSetup setup = make_run_setup(options, {formula_dataset(64), test}, 2);
  (void)test->hash();  // which the start reads every sample for
  test->slow = true;
  const Outcome outcome = run(setup);
  ASSERT_EQ(outcome.epochs.size(), 1U);
  EXPECT_EQ(outcome.epochs[0].test.samples, 500);
  EXPECT_EQ(test->slow_reads().size(), 1U) << "one rank had all of them";
}

TEST(Evaluate, PhotographsThatTakeLongAreSharedByAllRanks) {
  const testing::TemporaryDirectory folder;
  const auto samples = formula_dataset(500, 5000);
  TrainOptions options = plain_options(1);
  options.files.out = folder.path();
  run(options, {formula_dataset(128), samples});
  std::vector<Evaluation> results;
  for (const int replicas : {1, 2}) {
    const auto test = std::make_shared<SlowHalf>(*samples, true);
    options.execution.devices.assign(static_cast<std::size_t>(replicas), DeviceId{});
    const RunSetup setup = make_run_setup(options, {formula_dataset(128), test}, replicas);
    (void)test->hash();  // which the start reads every sample for
    test->slow = replicas > 1;
    results.push_back(evaluate(setup, folder / "model.safetensors"));
    if (replicas == 1) continue;
    const std::vector<int> reads = test->slow_reads();
    ASSERT_EQ(reads.size(), 2U);
    for (const int count : reads) EXPECT_GT(count, 75) << "of 250 slow ones";
  }
  EXPECT_EQ(results[0].loss, results[1].loss);
  const data::Splits in_order{formula_dataset(128), samples};
  const Evaluation expected =
      evaluate(make_run_setup(options, in_order, 2), folder / "model.safetensors");
  EXPECT_EQ(results[0].right, expected.right);
  EXPECT_NEAR(results[0].loss, expected.loss, 1e-6);
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
