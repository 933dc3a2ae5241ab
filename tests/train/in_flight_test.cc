// Steps whose numbers are still on their way to the host, as on a GPU: what a run computes, reports
// and saves may not depend on how many there are.
#include <gtest/gtest.h>

#include <atomic>
#include <filesystem>
#include <string>
#include <tuple>
#include <vector>

#include "tests/support/files.h"
#include "tests/train/runs.h"

namespace ringlet::train {
namespace {

constexpr std::int64_t kSteps = 12;  // three epochs of four

TrainOptions options_for(int replicas) {
  TrainOptions options = exact_options(replicas);
  options.recipe.batch_size = 24;
  options.recipe.epochs = 3;
  return options;
}

RunSetup setup_of(const TrainOptions& options, int in_flight) {
  const auto replicas = static_cast<int>(options.execution.devices.size());
  RunSetup setup = make_run_setup(options, formula_splits(90), replicas);
  setup.steps_in_flight = in_flight;
  return setup;
}

/// What each saved state said of the epoch that was under way.
class SavedProgress : public RunListener {
 public:
  void saved(const std::string& path) override {
    if (!std::filesystem::is_directory(path)) return;
    const Progress progress = read_state(path).progress;
    seen.emplace_back(progress.step, progress.epoch_samples, progress.epoch_loss);
  }
  std::vector<std::tuple<std::int64_t, std::int64_t, double>> seen;
};

class InFlight : public ::testing::TestWithParam<int> {};

TEST_P(InFlight, ChangesNothingThatIsComputedToldOrSaved) {
  for (const int save_every : {0, 5}) {
    const testing::TemporaryDirectory expected_folder, folder;
    TrainOptions options = options_for(2);
    options.files.save_every = save_every;
    options.execution.check_replicas = 3;
    options.files.out = expected_folder.path();
    SavedProgress expected_saves, saves;
    const Outcome expected = run(setup_of(options, 0), {&expected_saves});
    options.files.out = folder.path();
    const Outcome actual = run(setup_of(options, GetParam()), {&saves});
    EXPECT_EQ(saves.seen, expected_saves.seen);
    EXPECT_EQ(saves.seen.size(), 3u);
    ASSERT_EQ(expected.steps.size(), static_cast<std::size_t>(kSteps));
    ASSERT_EQ(actual.steps.size(), expected.steps.size());
    for (std::size_t i = 0; i < actual.steps.size(); ++i) {
      EXPECT_EQ(actual.steps[i].step, expected.steps[i].step);
      EXPECT_EQ(actual.steps[i].epoch, expected.steps[i].epoch);
      EXPECT_EQ(actual.steps[i].step_in_epoch, expected.steps[i].step_in_epoch);
      EXPECT_EQ(actual.steps[i].loss, expected.steps[i].loss);
      EXPECT_EQ(actual.steps[i].lr, expected.steps[i].lr);
      EXPECT_EQ(actual.steps[i].samples, expected.steps[i].samples);
    }
    ASSERT_EQ(actual.epochs.size(), 3u);
    for (std::size_t i = 0; i < actual.epochs.size(); ++i) {
      EXPECT_EQ(actual.epochs[i].train_loss, expected.epochs[i].train_loss);
      EXPECT_EQ(actual.epochs[i].test.loss, expected.epochs[i].test.loss);
    }
    EXPECT_TRUE(bytes_of(actual.state) == bytes_of(expected.state));
    for (const char* file : {"model.safetensors", "state/optimizer.safetensors"}) {
      EXPECT_TRUE(testing::read_file(folder / file) == testing::read_file(expected_folder / file));
    }
  }
}

TEST_P(InFlight, AnInterruptedRunGoesOnAsIfNothingHadBeen) {
  const testing::TemporaryDirectory folder;
  TrainOptions options = options_for(2);
  const Outcome whole = run(setup_of(options, 0));
  options.files.out = folder.path();
  RunSetup setup = setup_of(options, GetParam());
  std::atomic<int> asked{0};
  constexpr int kInTest = 3;  // a pass of rank 0, and each rank's end
  setup.stop_requested = [&asked] { return asked++ == 2 * 5 + kInTest; };  // one rank, in step 6
  const Outcome first = run(setup);
  EXPECT_TRUE(first.result.interrupted);
  EXPECT_GE(first.result.step, 6);
  EXPECT_LE(first.result.step, 6 + GetParam());
  EXPECT_EQ(first.steps.size(), static_cast<std::size_t>(first.result.step));
  const SavedState saved = read_state(folder.path());
  EXPECT_EQ(saved.progress.step, first.result.step);

  RunSetup rest = make_run_setup(options, formula_splits(90), 2, saved);
  rest.steps_in_flight = GetParam();
  EXPECT_TRUE(bytes_of(run(rest).state) == bytes_of(whole.state));
}

TEST_P(InFlight, ABrokenLossIsFoundAndNothingIsSaved) {
  const testing::TemporaryDirectory folder;
  TrainOptions options = options_for(2);
  options.recipe.lr = 1e30;
  options.files.out = folder.path();
  const std::string message =
      testing::message_of<Error>([&] { run(setup_of(options, GetParam())); });
  EXPECT_TRUE(testing::says(message, {"the loss is", "in step", "no state was saved since"}));
  EXPECT_FALSE(std::filesystem::exists(folder / "state"));
}

INSTANTIATE_TEST_SUITE_P(Steps, InFlight, ::testing::Values(1, 2, 5),
                         ::testing::PrintToStringParamName());

}  // namespace
}  // namespace ringlet::train
