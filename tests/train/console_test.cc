// What a run shows a person: what has room on the terminal, and what a file gets.
#include "train/telemetry/console.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cstdio>
#include <sstream>

#include "base/processors.h"
#include "kernels/elementwise.h"
#include "tests/support/files.h"
#include "tests/train/runs.h"
#include "train/telemetry/progress.h"

namespace ringlet::train {
namespace {

using ringlet::testing::read_file;
using ringlet::testing::TemporaryDirectory;

constexpr RunProgress kProgress{.epoch = 1,
                                .epochs = 6,
                                .step_in_epoch = 23,
                                .steps_per_epoch = 469,
                                .loss = 0.5432,
                                .samples_per_second = 12345,
                                .seconds_left = 63};

TEST(ProgressLine, LeavesOutWhatSaysLeastWhereThereIsNoRoom) {
  const std::string whole = "epoch 1/6  step 23/469  loss 0.5432  12,345 samples/s  1:03 min left";
  EXPECT_EQ(progress_line(kProgress, 200), whole);
  EXPECT_EQ(progress_line(kProgress, whole.size()), whole);
  EXPECT_EQ(progress_line(kProgress, whole.size() - 1),
            "epoch 1/6  step 23/469  loss 0.5432  1:03 min left");
  EXPECT_EQ(progress_line(kProgress, 39), "epoch 1/6  step 23/469  1:03 min left");
  EXPECT_EQ(progress_line(kProgress, 30), "epoch 1/6  1:03 min left");
  EXPECT_EQ(progress_line(kProgress, 10), "epoch 1/6");
  EXPECT_EQ(progress_line(kProgress, 4), "epoc");
}

TEST(ProgressLine, SaysWhenItIsDataThatOneWaitsFor) {
  RunProgress progress = kProgress;
  progress.data_share = 0.09;
  EXPECT_EQ(progress_line(progress, 200), progress_line(kProgress, 200));
  progress.data_share = 0.434;
  const std::string whole = progress_line(kProgress, 200) + "  43 % waiting for data";
  EXPECT_EQ(progress_line(progress, 200), whole);
  EXPECT_EQ(progress_line(progress, whole.size() - 1),
            "epoch 1/6  step 23/469  loss 0.5432  1:03 min left  43 % waiting for data");
  EXPECT_EQ(progress_line(progress, 60), "epoch 1/6  step 23/469  loss 0.5432  1:03 min left");
}

TEST(ProgressTable, KeepsTheAccuracyWhereverItIsNarrow) {
  const EpochReport report{.epoch = 3,
                           .step = 1407,
                           .train_loss = 0.54321,
                           .test = {},
                           .seconds = 10.25,
                           .samples_per_second = 12345,
                           .sync_share = 0.015,
                           .phases = {}};
  const ProgressTable wide;
  EXPECT_EQ(wide.head(),
            "epoch   train loss   test loss   test accuracy   seconds   samples/s   in sync\n");
  EXPECT_EQ(wide.row(report).size(), wide.head().size());
  EXPECT_NE(wide.row(report).find("    3       0.5432   "), std::string::npos);
  EXPECT_EQ(ProgressTable(77).head(), wide.head().substr(0, wide.head().rfind("   ")) + "\n");
  EXPECT_EQ(ProgressTable(39).head(), "epoch   train loss   test accuracy\n");
  EXPECT_EQ(ProgressTable(1).head(), "epoch   test accuracy\n");
  for (const std::size_t room : {21u, 34u, 44u, 56u, 68u, 78u}) {
    const ProgressTable table(room);
    EXPECT_LE(table.head().size(), room + 1) << table.head();
    EXPECT_EQ(table.head().size(), table.row(report).size());
  }
}

std::size_t count_of(const std::string& part, const std::string& text) {
  std::size_t count = 0;
  for (auto at = text.find(part); at != std::string::npos; at = text.find(part, at + 1)) ++count;
  return count;
}

TEST(Console, ShowsTheTableOnceWherePlainLinesStandBetweenItsRows) {
  const TemporaryDirectory folder;
  TrainOptions options = plain_options(1);
  options.recipe.epochs = 3;
  const RunSetup setup = make_run_setup(options, formula_splits(5 * 64), 1);
  std::FILE* file = std::fopen((folder / "console").c_str(), "w");
  ASSERT_NE(file, nullptr);
  {
    Console console(file, false, 0);  // a plain line for each step
    run(setup, {&console});
    console.finish();
  }
  std::fclose(file);
  const std::string text = read_file(folder / "console");
  EXPECT_EQ(count_of("epoch   train loss", text), 1u) << text;
  EXPECT_EQ(count_of("\n        epoch ", text), 15u) << text;
  for (const char* row : {"\n    1   ", "\n    2   ", "\n    3   "}) {
    EXPECT_EQ(count_of(row, text), 1u) << row << " of: " << text;
  }
}

TEST(Console, SaysAtTheEndWhatOtherWorkDisturbed) {
  const TemporaryDirectory folder;
  for (const double waited : {0.0, 1.2}) {  // of six seconds in three epochs
    std::FILE* file = std::fopen((folder / "console").c_str(), "w");
    ASSERT_NE(file, nullptr);
    {
      Console console(file, false, 1e9);
      EpochReport report;
      report.interference = {.seconds = 2, .waited = waited};
      for (report.epoch = 1; report.epoch <= 3; ++report.epoch) {
        console.epoch_done(report);
        report.interference.waited = waited / 4;
      }
      console.finish();
    }
    std::fclose(file);
    const std::string text = read_file(folder / "console");
    EXPECT_EQ(
        count_of("busy      other work had replica 0's processor for 30 % of the time: the times "
                 "above are a busy machine's\n",
                 text),
        waited > 1 ? 1u : 0u)
        << text;
    EXPECT_EQ(count_of("\nbusy", text), waited > 1 ? 1u : 0u) << text;
  }
}

TEST(Console, SaysAtTheEndThatTheCoreWasShared) {
  const TemporaryDirectory folder;
  for (const std::int64_t looks : {2, 3}) {  // in each of two epochs
    std::FILE* file = std::fopen((folder / "console").c_str(), "w");
    ASSERT_NE(file, nullptr);
    {
      Console console(file, false, 1e9);
      EpochReport report;
      report.core = {.looks = looks, .shared = looks};
      console.epoch_done(report);
      report.core.shared = 0;
      console.epoch_done(report);
      console.finish();
    }
    std::fclose(file);
    EXPECT_EQ(
        count_of("\nshared    replica 0's core was shared for 50 % of the time (with what ran "
                 "on its other hyper-thread): steps take up to twice as long\n",
                 read_file(folder / "console")),
        looks == 3 ? 1u : 0u)
        << looks;
  }
}

/// What is shown of four steps, of a run that has so many.
std::string shown_of(const TrainOptions& options, std::int64_t steps) {
  const TemporaryDirectory folder;
  const RunSetup setup = make_run_setup(options, formula_splits(64), 1);
  std::FILE* file = std::fopen((folder / "console").c_str(), "w");
  {
    Console console(file, false, 1e9);
    const nn::Plan plan;
    StartReport start{.options = setup.options, .plan = plan, .buckets = {}, .data = ""};
    start.planned_steps = start.steps_per_epoch = steps;
    start.batch_of_replica = {64};
    console.started(start);
    for (std::int64_t step = 1; step <= 4; ++step) console.step_done({.epoch = 1, .step = step});
  }
  std::fclose(file);
  return read_file(folder / "console");
}

constexpr std::int64_t kLong = std::int64_t{1} << 50;

TEST(Console, SaysAboutHowLongItTakesWhereThatIsLong) {
  TrainOptions options = plain_options(1);
  options.execution.threads = usable_processors();
  for (const std::int64_t steps : {std::int64_t{4}, kLong}) {
    const std::string text = shown_of(options, steps);
    EXPECT_EQ(count_of(" h of training, by the first 3 steps\n", text), steps > 4 ? 1u : 0u)
        << text;
    EXPECT_EQ(count_of("by the first", text), steps > 4 ? 1u : 0u) << text;
  }
}

TEST(Console, SaysHowManyThreadsWouldKeepAllProcessorsBusy) {
  TrainOptions options = plain_options(1);
  const int processors = usable_processors();
  const std::string hint = "by the first 3 steps; --threads " + std::to_string(processors) +
                           " would keep all processors busy\n";
  EXPECT_EQ(count_of(hint, shown_of(options, kLong)), processors > 1 ? 1u : 0u);
  options.execution.in_processes = true;  // of how many on this machine is not known
  EXPECT_EQ(count_of("processors busy", shown_of(options, kLong)), 0u);
}

/// A model whose last layer is zeros.
TEST(Console, TellsOnceOfEmbeddingsWithoutALength) {
  const TemporaryDirectory folder;
  TrainOptions options = plain_options(2);
  options.recipe.epochs = 2;
  options.recipe.lr = 0;
  options.recipe.loss = "arcface";
  options.recipe.embedding_size = 6;
  const RunSetup setup = make_run_setup(options, formula_splits(2 * 64), 2);
  for (const bool zeros : {false, true}) {
    const std::string name = folder / std::to_string(static_cast<int>(zeros));
    std::FILE* file = std::fopen(name.c_str(), "w");
    ASSERT_NE(file, nullptr);
    {
      Console console(file, false);
      const auto blank = [zeros](TrainLoop& loop, Device& device, int) {
        for (const auto* p : loop.replica().parameters().registry().parameters) {
          if (zeros && p->name.starts_with("fc2.")) fill(device.compute(), 0, p->value);
        }
      };
      const Outcome outcome = run(setup, {&console}, blank);
      EXPECT_EQ(outcome.result.test.without_length, zeros ? 40 : 0);
      EXPECT_TRUE(outcome.result.test.numbers.empty());
    }
    std::fclose(file);
    const std::string text = read_file(name);
    EXPECT_EQ(count_of("\ntraining  target angle ", text), 2u) << text;
    EXPECT_EQ(count_of(" degrees, nearest wrong angle ", text), 2u) << text;
    EXPECT_EQ(count_of("target angle 90.00 degrees", text), zeros ? 2u : 0u) << text;
    EXPECT_EQ(count_of("40 of 40 test embeddings", text), zeros ? 1u : 0u) << text;
  }
}

}  // namespace
}  // namespace ringlet::train
