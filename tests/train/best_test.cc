// The best test of a run's epochs: whose model is kept, and --patience, which ends a run that gets
// no better.
#include "train/loop/best_test.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <map>
#include <string>
#include <vector>

#include "tests/support/files.h"
#include "tests/train/runs.h"

namespace ringlet::train {
namespace {

namespace fs = std::filesystem;

constexpr int kEpochs = 6;

data::Splits few_samples() {
  static const data::Splits data = formula_splits(96, 50);
  return data;
}

/// Learns so fast that its tests go up and down.
TrainOptions restless(const fs::path& out, BestBy by = BestBy::automatic) {
  TrainOptions options = plain_options(1);
  options.recipe.model = "mlp";
  options.recipe.batch_size = 32;
  options.recipe.epochs = kEpochs;
  options.recipe.lr = 0.8;
  options.recipe.best_by = by;
  options.files.out = out;
  return options;
}

/// Learns nothing, so no epoch is better than the first.
TrainOptions resting(const fs::path& out, int patience, int replicas = 1) {
  TrainOptions options = restless(out);
  options.execution.devices.resize(static_cast<std::size_t>(replicas));
  options.recipe.lr = 0;
  options.recipe.patience = patience;
  return options;
}

/// Keeps the model of each epoch, which is saved before its test.
struct Models : RunListener {
  explicit Models(fs::path folder) : out(std::move(folder)) {}
  void epoch_done(const EpochReport& report) override {
    by_step[report.step] = testing::read_file(out / "state/model.safetensors");
    if (report.is_best) {
      EXPECT_EQ(testing::read_file(out / kBestModelFile), by_step[report.step]) << report.epoch;
    }
  }
  fs::path out;
  std::map<std::int64_t, std::string> by_step;
};

Outcome go_on(TrainOptions options, const fs::path& from,
              const std::vector<RunListener*>& listeners = {}) {
  const SavedState saved = read_state(from);
  const int ranks = static_cast<int>(options.execution.devices.size());
  return run(make_run_setup(options, few_samples(), ranks, saved), listeners);
}

double value_of(const EpochReport& epoch, BestBy by) {
  return by == BestBy::loss ? -epoch.test.loss : epoch.test.accuracy();
}

TEST(BestTest, IsTheModelOfTheFirstEpochThatNoneSurpasses) {
  for (const BestBy by : {BestBy::automatic, BestBy::accuracy, BestBy::loss}) {
    const testing::TemporaryDirectory folder;
    Models models(folder.path());
    const Outcome outcome = run(restless(folder.path(), by), few_samples(), {&models});
    ASSERT_EQ(outcome.epochs.size(), std::size_t{kEpochs});
    const auto best = std::ranges::max_element(outcome.epochs, {},
                                               [&](const auto& e) { return value_of(e, by); });
    ASSERT_TRUE(outcome.result.best.has_value());
    EXPECT_EQ(outcome.result.best->step, best->step);
    EXPECT_EQ(outcome.result.best->by, by == BestBy::loss ? "loss" : "accuracy");
    EXPECT_EQ(outcome.result.best->worse, outcome.epochs.end() - best - 1);
    EXPECT_EQ(testing::read_file(folder / kBestModelFile), models.by_step.at(best->step));
    EXPECT_EQ(read_state(folder.path()).progress.best_test, outcome.result.best);
    EXPECT_FALSE(outcome.result.stopped);
    if (by == BestBy::loss) {  // else the test shows nothing
      EXPECT_NE(best, std::prev(outcome.epochs.end()));
    }
  }
}

TEST(BestTest, IsTheSameForARunThatWasStoppedAnywhere) {
  const testing::TemporaryDirectory whole_folder;
  const Outcome whole = run(restless(whole_folder.path(), BestBy::loss), few_samples());
  const std::string expected = testing::read_file(whole_folder / kBestModelFile);
  for (std::int64_t stop = 1; stop < 3 * kEpochs; stop += 2) {
    for (const bool elsewhere : {false, true}) {
      const testing::TemporaryDirectory folder, other;
      TrainOptions first = restless(folder.path(), BestBy::loss);
      first.max_steps = stop;
      run(first, few_samples());
      const fs::path out = elsewhere ? other.path() : folder.path();
      const Outcome rest = go_on(restless(out, BestBy::loss), folder.path());
      EXPECT_EQ(rest.result.best, whole.result.best) << stop;
      EXPECT_EQ(testing::read_file(out / kBestModelFile), expected) << stop << elsewhere;
    }
  }
}

TEST(BestTest, IsKeptOfStagesAndOfAveragedWeights) {
  const testing::TemporaryDirectory one, two;
  TrainOptions options = normed(restless(one.path(), BestBy::loss));
  options.recipe.epochs = 2;
  options.recipe.ema = 0.5;
  options.recipe.accumulate = 2;
  Models models(one.path());
  const Outcome outcome = run(options, few_samples(), {&models});
  options.files.out = two.path();
  options.execution.devices.resize(2);
  options.execution.stages = "2";
  EXPECT_EQ(run(options, few_samples()).result.best, outcome.result.best);
  EXPECT_EQ(testing::read_file(two / kBestModelFile), testing::read_file(one / kBestModelFile));
}

TEST(BestTest, OfARunWithoutAFolderIsToldAlone) {
  TrainOptions options = restless({});
  options.recipe.epochs = 1;
  EXPECT_TRUE(run(options, few_samples()).result.best.has_value());
}

TEST(Patience, EndsARunThatGetsNoBetterWithItsModel) {
  for (const int replicas : {1, 3}) {
    const testing::TemporaryDirectory folder;
    const Outcome outcome = run(resting(folder.path(), 2, replicas), few_samples());
    EXPECT_EQ(outcome.epochs.size(), 3U);
    EXPECT_TRUE(outcome.result.stopped && outcome.result.finished);
    EXPECT_FALSE(outcome.result.interrupted);
    EXPECT_EQ(outcome.result.step, 9);
    const Progress progress = read_state(folder.path()).progress;
    EXPECT_TRUE(progress.stopped);
    EXPECT_FALSE(progress.untested.has_value());
    EXPECT_EQ(testing::read_file(folder / kModelFile),
              testing::read_file(folder / "state/model.safetensors"));
  }
}

TEST(Patience, AtTheLastEpochEndsNothing) {
  const testing::TemporaryDirectory folder;
  const Outcome outcome = run(resting(folder.path(), kEpochs - 1), few_samples());
  EXPECT_EQ(outcome.epochs.size(), std::size_t{kEpochs});
  EXPECT_FALSE(outcome.result.stopped);
}

/// States that are saved every so many steps need not be those of an epoch's end.
TEST(Patience, SavesWhereNoStateWasDue) {
  const testing::TemporaryDirectory folder;
  TrainOptions options = resting(folder.path(), 1);
  options.files.save_every = 4;
  EXPECT_TRUE(run(options, few_samples()).result.stopped);
  const Progress progress = read_state(folder.path()).progress;
  EXPECT_TRUE(progress.stopped);
  EXPECT_EQ(progress.step, 6);
  EXPECT_TRUE(fs::exists(folder / kModelFile));
}

TEST(Patience, OnlyALargerOneLetsARunGoOn) {
  const testing::TemporaryDirectory folder;
  run(resting(folder.path(), 1), few_samples());
  const Outcome same = go_on(resting(folder.path(), 1), folder.path());
  EXPECT_TRUE(same.steps.empty() && same.epochs.empty());
  EXPECT_TRUE(same.result.stopped && same.result.finished);
  const Outcome larger = go_on(resting(folder.path(), 3), folder.path());
  EXPECT_EQ(larger.epochs.size(), 2U);
  EXPECT_TRUE(larger.result.stopped);
  const Outcome none = go_on(resting(folder.path(), 0), folder.path());
  EXPECT_EQ(none.epochs.size(), 2U);
  EXPECT_FALSE(none.result.stopped);
}

TEST(Patience, MoreEpochsLetARunGoOnAndCountAnew) {
  const testing::TemporaryDirectory folder;
  run(resting(folder.path(), 2), few_samples());
  TrainOptions longer = resting(folder.path(), 2);
  longer.recipe.epochs = kEpochs + 4;
  const Outcome rest = go_on(longer, folder.path());
  EXPECT_EQ(rest.epochs.size(), 2U);
  EXPECT_TRUE(rest.result.stopped);
  const Progress progress = read_state(folder.path()).progress;
  EXPECT_EQ(progress.best_test->step, 3);
  EXPECT_EQ(progress.lengths, (std::vector<FormerLength>{{9, kEpochs}}));
}

TEST(BestTest, WhatIsNotMeasuredIsRefusedWithWhatIs) {
  TrainOptions options = restless({}, BestBy::accuracy);
  options.recipe.loss = "arcface";
  EXPECT_TRUE(testing::says(
      testing::message_of<ContractError>([&] { make_run_setup(options, few_samples(), 1); }),
      {"--best-by", "OUT/best"}));
  options.recipe.best_by = BestBy::automatic;
  EXPECT_FALSE(make_run_setup(options, few_samples(), 1).keeps_best);
  options.recipe.patience = 2;
  EXPECT_THROW(make_run_setup(options, few_samples(), 1), ContractError);
}

}  // namespace
}  // namespace ringlet::train
