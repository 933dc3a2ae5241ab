// Batch norm in training: running statistics are sums over the world, as gradients are, so every
// rank has the same after each step; and the statistics of a batch may be the whole world's.
#include <gtest/gtest.h>

#include "tests/support/files.h"
#include "tests/support/tensors.h"
#include "tests/train/runs.h"

namespace ringlet::train {
namespace {

/// 64 samples and two more: the last step leaves ranks without any.
const data::Splits& data() {
  static const data::Splits splits = formula_splits(130);
  return splits;
}

TEST(BatchNormTraining, GivesTheSameBytesInExactModeForAnyNumberOfReplicas) {
  for (const auto layout : {LayoutChoice::nchw, LayoutChoice::lanes}) {
    std::string expected;
    for (const int replicas : {1, 2, 4}) {
      TrainOptions options = normed(exact_options(replicas));
      options.recipe.accumulate = 2;
      options.execution.layout = layout;
      const Outcome outcome = run(options, formula_splits(128));
      EXPECT_EQ(outcome.state.counters, std::vector<std::int64_t>(3, 4)) << "two a step";
      if (expected.empty()) expected = bytes_of(outcome.state);
      for (const HostState& rank : outcome.of_ranks) EXPECT_TRUE(bytes_of(rank) == expected);
    }
  }
}

TEST(BatchNormTraining, LeavesAllRanksWithTheSameBuffers) {
  for (const std::string sync : {"ring", "doubling"}) {
    const Outcome outcome = run(normed(plain_options(3, sync)), data());
    EXPECT_EQ(outcome.state.counters, std::vector<std::int64_t>(3, 3));
    EXPECT_NE(outcome.state.buffers.front(), std::vector<float>(4, 0));
    for (const HostState& rank : outcome.of_ranks) {
      EXPECT_TRUE(bytes_of(rank) == bytes_of(outcome.state));
    }
  }
}

/// The largest relative L2 distance of a buffer.
double buffer_distance(const HostState& actual, const HostState& expected) {
  double largest = 0;
  for (std::size_t i = 0; i < expected.buffers.size(); ++i) {
    largest = std::max(largest, test::relative_l2(actual.buffers[i], expected.buffers[i]));
  }
  return largest;
}

// Sixteen bits would round them by up to 4e-3.
TEST(BatchNormTraining, KeepsItsStatisticsAsF32WhereGradientsAreNarrow) {
  TrainOptions options = normed(plain_options(2));
  options.max_steps = 1;
  const HostState wide = run(options, data()).state;
  options.recipe.grad_dtype = DType::bf16;
  EXPECT_LT(buffer_distance(run(options, data()).state, wide), 1e-6);
}

class WorldBatchNorm : public ::testing::TestWithParam<LayoutChoice> {};
INSTANTIATE_TEST_SUITE_P(Layouts, WorldBatchNorm,
                         ::testing::Values(LayoutChoice::nchw, LayoutChoice::lanes));

// One device with the joined batch, against ranks of which some have no sample in the last step.
TEST_P(WorldBatchNorm, IsThatOfOneDevice) {
  TrainOptions alone = normed(plain_options(1));
  alone.execution.layout = GetParam();
  const Outcome one = run(alone, data());
  for (const int replicas : {2, 3}) {
    TrainOptions options = normed(plain_options(replicas));
    options.execution.layout = GetParam();
    options.recipe.batch_norm = BatchStatistics::shard;
    const Outcome apart = run(options, data());
    options.recipe.batch_norm = BatchStatistics::world;
    const Outcome together = run(options, data());
    EXPECT_LT(distance(together.state, one.state), 2e-5) << replicas;
    EXPECT_LT(buffer_distance(together.state, one.state), 2e-5) << replicas;
    EXPECT_EQ(together.state.counters, one.state.counters);
    EXPECT_GT(distance(apart.state, one.state), 1e-3) << "or nothing would be shown";
    for (const HostState& rank : together.of_ranks) {
      EXPECT_TRUE(bytes_of(rank) == bytes_of(together.state));
    }
  }
}

TEST(BatchNormTraining, OfTheWorldIsRefusedInExactMode) {
  TrainOptions options = normed(exact_options(2));
  options.recipe.batch_norm = BatchStatistics::world;
  const std::string message =
      testing::message_of<ContractError>([&] { make_run_setup(options, data(), 2); });
  EXPECT_TRUE(testing::says(message, {"--batch-norm world", "--exact"}));
}

TEST(BatchNormTraining, ResumesAsIfNeverStopped) {
  const testing::TemporaryDirectory folder;
  const data::Splits splits = formula_splits(256);
  const std::string expected = bytes_of(run(normed(exact_options(2)), splits).state);
  TrainOptions first = normed(exact_options(1));
  first.files.out = folder.path();
  first.max_steps = 2;
  run(first, splits);
  TrainOptions rest = normed(exact_options(4));
  const Outcome outcome = run(make_run_setup(rest, splits, 4, read_state(folder.path())));
  EXPECT_TRUE(bytes_of(outcome.state) == expected);
}

// resnet18 has images of 28 x 28 down to one pixel.
TEST(BatchNormTraining, OneValueAChannelIsToldBeforeTheFirstStep) {
  const auto message = [](std::int64_t samples, int replicas, auto change) {
    TrainOptions options = plain_options(replicas);
    options.recipe.model = "resnet18";
    options.recipe.batch_size = 8;
    change(options);
    try {
      require_trainable(make_run_setup(options, formula_splits(samples), replicas));
    } catch (const ContractError& error) {
      return std::string(error.what());
    }
    return std::string();
  };
  const auto as_it_is = [](TrainOptions&) {};
  EXPECT_TRUE(testing::says(message(65, 1, as_it_is),
                            {"step 9 of each epoch has 1 of the 65", "take another --batch-size"}));
  EXPECT_TRUE(testing::says(message(66, 2, as_it_is), {"step 9 of each epoch has 2 of the 66"}));
  EXPECT_TRUE(testing::says(message(64, 1, [](TrainOptions& o) { o.recipe.batch_size = 1; }),
                            {"step 1 of each epoch has 1 of the 64"}));
  EXPECT_TRUE(testing::says(message(64, 1, [](TrainOptions& o) { o.recipe.accumulate = 8; }),
                            {"step 1 of each epoch has 8 of the 64",
                             "fewer replicas, shards or --accumulate (--micro-batches)"}));
  EXPECT_EQ(message(64, 1, as_it_is), "");
  EXPECT_EQ(message(65, 1, [](TrainOptions& o) { o.max_steps = 8; }), "");
  EXPECT_EQ(message(65, 1, [](TrainOptions& o) { o.recipe.model = "resnet20"; }), "");
  EXPECT_EQ(message(65, 1, [](TrainOptions& o) { o.recipe.model = "lenet"; }), "");
  EXPECT_EQ(message(66, 2, [](TrainOptions& o) { o.recipe.batch_norm = BatchStatistics::world; }),
            "");
}

TEST(BatchNormTraining, WithOneValueAChannelDoesNotBegin) {
  TrainOptions options = normed(plain_options(1));
  options.recipe.model = "resnet18";
  options.make_model = {};
  options.recipe.batch_size = 1;
  const RunSetup setup = make_run_setup(options, formula_splits(2), 1);
  EXPECT_TRUE(testing::says(testing::message_of<ContractError>([&] { train(setup, {}); }),
                            {"step 1 of each epoch"}));
}

}  // namespace
}  // namespace ringlet::train
