// Learner, and what a program brings of its own (a model, a strategy), against the library's own
// loop and strategies.
#include "train/learner.h"

#include <gtest/gtest.h>

#include <atomic>
#include <cmath>
#include <vector>

#include "comm/all_reduce/naive.h"
#include "nn/models/mlp.h"
#include "tests/support/files.h"
#include "tests/train/runs.h"
#include "train/trainer.h"

namespace ringlet::train {
namespace {

constexpr std::int64_t kBatch = 64;
constexpr std::int64_t kLearningSteps = 6;

/// Where rank's samples of a batch begin: cuts[rank] to cuts[rank + 1].
using Cuts = std::vector<std::int64_t>;

/// The losses of kLearningSteps steps of the mlp on the formula's images, in file order.
std::vector<double> learn(const Cuts& cuts, std::int64_t world_samples = kBatch) {
  const auto dataset = formula_dataset(kBatch * kLearningSteps);
  const auto input =
      nn::ModelInput{1, static_cast<int>(dataset->height()), static_cast<int>(dataset->width()),
                     static_cast<int>(dataset->classes())};
  std::vector<std::vector<double>> losses(cuts.size() - 1);
  Execution execution;
  execution.devices.assign(cuts.size() - 1, DeviceId{});
  run_replicas(execution, [&](Device& device, comm::Communicator& all) {
    const auto rank = static_cast<std::size_t>(all.rank());
    Learner learner(device, all, nn::make_mlp, {.input = input, .max_batch = kBatch});
    const auto share = [&](std::int64_t k) -> std::optional<data::BatchRequest> {
      if (k == kLearningSteps) return {};
      return data::BatchRequest{0, k * kBatch + cuts[rank], k * kBatch + cuts[rank + 1]};
    };
    data::Loader loader(dataset, data::Sampler(dataset->size(), 1, false), share,
                        {.max_batch = 2 * kBatch});
    while (const data::Batch* batch = loader.next()) {
      losses[rank].push_back(learner.step(*batch, world_samples, {.lr = 0.05, .momentum = 0.9}));
    }
  });
  for (const auto& of_rank : losses) EXPECT_EQ(of_rank, losses[0]) << "all ranks hear the same";
  return losses[0];
}

void expect_near(const std::vector<double>& a, const std::vector<double>& b) {
  ASSERT_EQ(a.size(), b.size());
  for (std::size_t i = 0; i < a.size(); ++i) EXPECT_NEAR(a[i], b[i], 2e-5 * std::abs(b[i])) << i;
}

TEST(Learner, LearnsWhatTheLibrarysLoopLearns) {
  TrainOptions options = plain_options(1, "ring");
  options.recipe.model = "mlp";
  const Outcome outcome = run(options, formula_splits(kBatch * kLearningSteps));
  expect_near(learn({0, kBatch}), outcome.losses());
}

TEST(Learner, LearnsTheSameHoweverABatchIsCut) {
  const std::vector<double> alone = learn({0, kBatch});
  EXPECT_LT(alone.back(), alone.front());
  expect_near(learn({0, 32, kBatch}), alone);
  expect_near(learn({0, 5, 40, kBatch}), alone);
  expect_near(learn({0, 0, kBatch}), alone);
}

TEST(Learner, NoticesSamplesThatDoNotAddUp) {
  const auto error_of = [](const Cuts& cuts) {
    return ringlet::testing::message_of<Error>([&] { learn(cuts, kBatch + 1); });
  };
  EXPECT_TRUE(ringlet::testing::says(error_of({0, 30, kBatch}), {"do not add up"}));
  EXPECT_TRUE(ringlet::testing::says(error_of({0, kBatch + 1}), {"max_batch"}));
}

TEST(Learner, CountsRightAnswers) {
  const auto dataset = formula_dataset(kBatch);
  run_replicas({}, [&](Device& device, comm::Communicator& all) {
    const nn::ModelInput input{1, static_cast<int>(dataset->height()),
                               static_cast<int>(dataset->width()),
                               static_cast<int>(dataset->classes())};
    Learner learner(device, all, nn::make_mlp, {.input = input, .max_batch = kBatch});
    data::Loader loader(dataset, data::Sampler(kBatch, 1, false),
                        [](std::int64_t) {
                          return data::BatchRequest{0, 0, kBatch};
                        },
                        {.max_batch = kBatch});
    const std::int64_t before = learner.count_right(*loader.next());
    for (int i = 0; i < 60; ++i)
      learner.step(*loader.next(), kBatch, {.lr = 0.05, .momentum = 0.9});
    EXPECT_GT(learner.count_right(*loader.next()), before);
    EXPECT_LE(learner.count_right(*loader.next()), kBatch);
  });
}

TEST(Own, ModelIsTrainedInPlaceOfANamedOne) {
  TrainOptions options = plain_options(2, "ring");
  options.recipe.model = "mlp";
  const data::Splits data = formula_splits(kBatch * kLearningSteps);
  const Outcome named = run(options, data);
  options.recipe.model = "mine";
  std::atomic<int> made = 0;
  options.make_model = [&](const nn::ModelInput& input) {
    ++made;
    return nn::make_mlp(input);
  };
  EXPECT_EQ(run(options, data).losses(), named.losses());
  EXPECT_EQ(made, 2) << "one a replica";
}

/// The naive strategy, but counted.
class Counted : public comm::AllReduce {
 public:
  Counted(comm::Transport& transport, std::atomic<int>& calls)
      : AllReduce(transport), naive_(transport), calls_(calls) {}
  const char* name() const override { return "counted"; }
  void run(Stream& stream, View data, ReduceOp op) override {
    ++calls_;
    naive_.run(stream, data, op);
  }
  std::optional<std::int64_t> elements_sent(std::int64_t count) const override {
    return naive_.elements_sent(count);
  }

 private:
  comm::NaiveAllReduce naive_;
  std::atomic<int>& calls_;
};

TEST(Own, StrategySumsTheGradients) {
  const data::Splits data = formula_splits(kBatch * kLearningSteps);
  TrainOptions options = plain_options(3, "naive");
  const Outcome naive = run(options, data);
  std::atomic<int> calls = 0;
  options.execution.sync = "counted";
  options.execution.strategies.add(
      {"counted", comm::Needs::nothing, comm::NaiveAllReduce::path_cost,
       [&](comm::Transport& transport) { return std::make_unique<Counted>(transport, calls); }});
  EXPECT_EQ(run(options, data).losses(), naive.losses());
  EXPECT_GE(calls, 3 * kLearningSteps);
}

}  // namespace
}  // namespace ringlet::train
