// The end of an epoch is safe: it is saved before it is tested, tested where a run that was ended
// there goes on, and told once whatever happens in between.
#include <gtest/gtest.h>

#include <atomic>
#include <cmath>
#include <functional>
#include <sstream>
#include <stdexcept>
#include <string>
#include <tuple>
#include <utility>
#include <vector>

#include "base/files/atomic_file.h"
#include "tests/support/files.h"
#include "tests/train/runs.h"
#include "train/telemetry/metrics_reader.h"
#include "train/telemetry/run_files.h"
#include "train/telemetry/tensorboard/event_file.h"

namespace ringlet::train {
namespace {

constexpr std::int64_t kSteps = 4;  // two epochs of two

data::Splits two_steps() {
  static const data::Splits data = formula_splits(100);
  return data;
}

TrainOptions options_into(const std::filesystem::path& out, int replicas = 1) {
  TrainOptions options = plain_options(replicas);
  options.recipe.model = "mlp";
  options.recipe.epochs = 2;
  options.files.out = out;
  return options;
}

/// Goes on with the run in `options`' folder, if it has a state; else begins it.
RunSetup setup_of(const TrainOptions& options, const data::Splits& data) {
  std::optional<SavedState> saved;
  if (std::filesystem::exists(options.files.out / "state")) saved = read_state(options.files.out);
  return make_run_setup(options, data, static_cast<int>(options.execution.devices.size()), saved);
}

std::string model_in(const std::filesystem::path& out) {
  return testing::read_file(out / "model.safetensors");
}

/// What is a run's end here: an exception, behind which nothing is written that was not before.
struct Killed : std::runtime_error {
  Killed() : std::runtime_error("killed") {}
};

/// Kills the run at the `left`-th call of any listener that has a share in it.
class Killer : public RunListener {
 public:
  explicit Killer(int& left) : left_(left) {}
  void step_done(const StepReport&) override { count(); }
  void epoch_done(const EpochReport&) override { count(); }
  void saved(const std::string&) override { count(); }

 private:
  void count() {
    if (--left_ == 0) throw Killed();
  }
  int& left_;
};

/// Runs with all files, and a killer before, between and behind them. False where it was killed.
bool run_until(const TrainOptions& options, int kill_at) {
  const RunSetup setup = setup_of(options, two_steps());
  const RunFiles files(setup);
  Killer killer(kill_at);
  std::vector<RunListener*> listeners{&killer};
  for (RunListener* file : files.listeners()) {
    listeners.push_back(file);
    listeners.push_back(&killer);
  }
  try {
    run(setup, listeners);
    return true;
  } catch (const Error&) {
    return false;
  }
}

/// Epochs by number, and how often each is told.
std::vector<std::string> told_in(const std::filesystem::path& out) {
  std::vector<std::string> told;
  const Metrics metrics = read_metrics(out / "metrics.jsonl");
  for (const std::int64_t step : metrics.steps.step) told.push_back("step " + std::to_string(step));
  for (const EpochMetrics& epoch : metrics.epochs) {
    told.push_back("epoch " + std::to_string(epoch.epoch) + " loss " +
                   std::to_string(epoch.test_loss) + " after " + std::to_string(epoch.train_loss) +
                   (epoch.seconds > 0 && epoch.samples_per_second > 0 ? " timed" : ""));
  }
  std::istringstream table(testing::read_file(out / "epochs.csv"));
  for (std::string line; std::getline(table, line);) {
    told.push_back("row " + line.substr(0, line.find(',')));
  }
  for (std::int64_t step = 1; step <= kSteps; ++step) {
    told.push_back(std::to_string(tensorboard::count_epochs(out / "events", step)) +
                   " events after " + std::to_string(step));
  }
  return told;
}

TEST(EpochEnd, IsToldOnceWhereverTheRunIsKilled) {
  const testing::TemporaryDirectory whole;
  TrainOptions options = options_into(whole.path());
  options.files.tensorboard = whole / "events";
  ASSERT_TRUE(run_until(options, -1));
  const std::vector<std::string> expected = told_in(whole.path());
  EXPECT_EQ(expected.size(), 4U + 2U + 3U + 4U);
  for (int kill_at = 1;; ++kill_at) {
    SCOPED_TRACE("killed at call " + std::to_string(kill_at));
    const testing::TemporaryDirectory folder;
    options = options_into(folder.path());
    options.files.tensorboard = folder / "events";
    const bool ended = run_until(options, kill_at);
    ASSERT_TRUE(run_until(options, -1));
    EXPECT_EQ(told_in(folder.path()), expected);
    EXPECT_EQ(model_in(folder.path()), model_in(whole.path()));
    if (ended) break;
    ASSERT_LT(kill_at, 100);
  }
}

TEST(EpochEnd, IsSavedBeforeItIsTested) {
  const testing::TemporaryDirectory folder;
  struct Looks : RunListener {
    explicit Looks(const std::filesystem::path& folder) : out(folder) {}
    void epoch_done(const EpochReport& report) override {
      const Progress progress = read_state(out).progress;
      EXPECT_EQ(progress.step, report.step);
      ASSERT_TRUE(progress.untested.has_value());
      EXPECT_EQ(progress.untested->seconds, report.seconds);
      EXPECT_EQ(progress.untested->phases, report.phases);
      EXPECT_EQ(progress.epoch_samples, 100);
      has_model = std::filesystem::exists(out / "model.safetensors");
    }
    std::filesystem::path out;
    bool has_model = false;
  } looks(folder.path());
  run(options_into(folder.path()), two_steps(), {&looks});
  EXPECT_TRUE(looks.has_model);
  const Progress after = read_state(folder.path()).progress;
  EXPECT_FALSE(after.untested.has_value());
  EXPECT_EQ(after.epoch_samples, 0);
  EXPECT_EQ(testing::read_file(folder / "state/state.json").find("untested"), std::string::npos);
}

/// Stops when it was asked as often as the steps of `ranks` do, and `more` times.
RunSetup stopped_in_test(const TrainOptions& options, const data::Splits& data, int ranks,
                         int steps, std::atomic<int>& asked, int more) {
  RunSetup setup = make_run_setup(options, data, ranks);
  setup.stop_requested = [&asked, last = ranks * steps + more] { return asked++ == last; };
  return setup;
}

TEST(EpochEnd, IsNotTestedFurtherWhenOneReplicaIsAskedToStop) {
  const data::Splits data = formula_splits(100, 1100);  // five passes
  const testing::TemporaryDirectory whole, folder;
  run(options_into(whole.path(), 2), data);
  std::atomic<int> asked{0};
  const TrainOptions options = options_into(folder.path(), 2);
  const Outcome first = run(stopped_in_test(options, data, 2, 2, asked, 1));
  EXPECT_TRUE(first.result.interrupted);
  EXPECT_FALSE(first.result.finished);
  EXPECT_EQ(first.result.step, 2);
  EXPECT_TRUE(first.epochs.empty());
  ASSERT_TRUE(read_state(folder.path()).progress.untested.has_value());
  const Outcome rest = run(setup_of(options, data));
  ASSERT_EQ(rest.epochs.size(), 2U);
  EXPECT_EQ(rest.epochs[0].step, 2);
  EXPECT_GT(rest.epochs[0].samples_per_second, 0);
  EXPECT_TRUE(rest.result.finished);
  EXPECT_EQ(model_in(folder.path()), model_in(whole.path()));
}

TEST(EpochEnd, AWishInTheTestOfTheLastEpochLeavesTheModelAndTheTestToDo) {
  const data::Splits data = formula_splits(100, 1100);
  const testing::TemporaryDirectory folder;
  TrainOptions options = options_into(folder.path());
  options.recipe.epochs = 1;
  std::atomic<int> asked{0};
  const Outcome first = run(stopped_in_test(options, data, 1, 2, asked, 2));
  EXPECT_TRUE(first.result.interrupted);
  EXPECT_FALSE(first.result.finished);
  const std::string model = model_in(folder.path());
  const Outcome rest = run(setup_of(options, data));
  EXPECT_TRUE(rest.result.finished);
  EXPECT_TRUE(rest.steps.empty());
  ASSERT_EQ(rest.epochs.size(), 1U);
  EXPECT_EQ(rest.result.test.samples, 1100);
  EXPECT_EQ(model_in(folder.path()), model);
}

class PartsOfAnEpoch : public ::testing::TestWithParam<int> {};
INSTANTIATE_TEST_SUITE_P(Stages, PartsOfAnEpoch, ::testing::Values(1, 2));

// A run that ends within an epoch says what that part took; one that goes on counts it in.
TEST_P(PartsOfAnEpoch, CountTheStepsOfAllRunsThatHadAShare) {
  const data::Splits data = formula_splits(100);
  const testing::TemporaryDirectory folder;
  TrainOptions options = options_into(folder.path(), GetParam());
  options.execution.stages = std::to_string(GetParam());
  options.max_steps = 1;
  const EpochReport part = run(setup_of(options, data)).epochs.at(0);
  ASSERT_TRUE(read_state(folder.path()).progress.earlier.has_value());
  EXPECT_EQ(read_state(folder.path()).progress.earlier->seconds, part.seconds);

  const EpochReport again = run(setup_of(options, data)).epochs.at(0);  // nothing but the test
  EXPECT_EQ(part.stages.has_value(), GetParam() > 1);
  EXPECT_FALSE(again.stages.has_value());  // of no step
  EXPECT_EQ(again.seconds, part.seconds);
  EXPECT_EQ(again.samples_per_second, part.samples_per_second);
  EXPECT_EQ(again.phases, part.phases);

  options.max_steps = 2;
  const EpochReport whole = run(setup_of(options, data)).epochs.at(0);
  EXPECT_GT(whole.seconds, part.seconds);
  EXPECT_GT(whole.phases.backward, part.phases.backward);
  EXPECT_NEAR(whole.samples_per_second * whole.seconds, 100, 1e-9);
  EXPECT_FALSE(read_state(folder.path()).progress.earlier.has_value());
}

// All steps behind the first one are skipped, and their losses are none.
TEST(EpochEnd, OfStepsThatF16SkipsIsToldAndGoneOnFrom) {
  const testing::TemporaryDirectory folder;
  TrainOptions options = options_into(folder.path());
  options.recipe.epochs = 4;
  options.recipe.lr = 1e30;
  options.recipe.precision = Precision::f16;
  options.execution.emulate_precision = true;
  options.max_steps = 4;
  const Outcome first = run(setup_of(options, two_steps()));
  ASSERT_EQ(first.epochs.size(), 2U);
  EXPECT_TRUE(first.steps[2].skipped && first.steps[3].skipped);
  EXPECT_TRUE(std::isfinite(first.epochs[0].train_loss));
  EXPECT_TRUE(std::isnan(first.epochs[1].train_loss));
  options.max_steps = 5;  // half of the third
  const Outcome part = run(setup_of(options, two_steps()));
  ASSERT_EQ(part.steps.size(), 1U);
  EXPECT_TRUE(part.steps[0].skipped);
  ASSERT_EQ(part.epochs.size(), 1U);
  EXPECT_EQ(part.epochs[0].test.samples, 40);
}

/// Some samples, of which one cannot be read as long as `broken`.
class WithBrokenSample : public data::Dataset {
 public:
  WithBrokenSample(std::shared_ptr<const data::Dataset> set, const bool& broken)
      : Dataset({.name = "test",
                 .channels = set->channels(),
                 .height = set->height(),
                 .width = set->width(),
                 .target_names = set->target_names()},
                {set->targets().begin(), set->targets().end()}),
        set_(std::move(set)),
        broken_(broken) {}
  void read(std::int64_t index, std::span<std::uint8_t> out) const override {
    if (broken_ && index == 7) throw std::runtime_error("sample 7 is broken");
    set_->read(index, out);
  }

 private:
  std::shared_ptr<const data::Dataset> set_;
  const bool& broken_;
};

class BrokenTest : public ::testing::TestWithParam<int> {};

TEST_P(BrokenTest, CostsNothingThatWasLearnt) {
  bool broken = false;
  data::Splits data = formula_splits(100, 600);
  data.test = std::make_shared<const WithBrokenSample>(data.test, broken);
  (void)data.test->hash();  // the start reads every sample for it
  broken = true;
  const testing::TemporaryDirectory folder;
  TrainOptions options = options_into(folder.path(), GetParam());
  options.files.save_every = 100;  // nothing else would be saved
  EXPECT_TRUE(testing::says(
      testing::message_of<Error>([&] { run(make_run_setup(options, data, GetParam())); }),
      {"sample 7 is broken", "what was learnt up to step 2 is saved", "begins with this test"}));
  EXPECT_EQ(read_state(folder.path()).progress.step, 2);
  // Still broken: nothing is lost, and nothing learnt that could not be tested.
  EXPECT_TRUE(testing::says(testing::message_of<Error>([&] { run(setup_of(options, data)); }),
                            {"sample 7 is broken", "up to step 2"}));
  broken = false;
  const Outcome rest = run(setup_of(options, data));
  EXPECT_EQ(rest.epochs.size(), 2U);
  EXPECT_EQ(rest.steps.size(), 2U);
  EXPECT_TRUE(rest.result.finished);

  broken = true;
  options.files.out.clear();
  EXPECT_TRUE(testing::says(
      testing::message_of<Error>([&] { run(make_run_setup(options, data, GetParam())); }),
      {"sample 7 is broken", "nothing was saved (--no-out)"}));
}

INSTANTIATE_TEST_SUITE_P(Replicas, BrokenTest, ::testing::Values(1, 3));

/// What cannot be read in an epoch's midst.
class BrokenTraining : public ::testing::TestWithParam<std::tuple<int, int, int>> {};

TEST_P(BrokenTraining, CostsNoStepThatWasMade) {
  const auto [replicas, accumulate, workers] = GetParam();
  constexpr std::int64_t kSamples = 600, kBatch = 60, kIndex = 7;
  const testing::TemporaryDirectory folder, undisturbed_folder;
  TrainOptions options = options_into(undisturbed_folder.path(), replicas);
  options.recipe.batch_size = kBatch;
  options.recipe.accumulate = accumulate;
  options.recipe.shuffle = true;
  options.execution.workers = workers;
  options.files.save_every = 1000;  // nothing else would be saved
  const data::Splits whole = formula_splits(kSamples);
  const Outcome undisturbed = run(make_run_setup(options, whole, replicas));
  options.files.out = folder.path();

  bool broken = false;
  data::Splits data = whole;
  data.train = std::make_shared<const WithBrokenSample>(data.train, broken);
  const RunSetup setup = make_run_setup(options, data, replicas);
  (void)data.train->hash();  // the start reads every sample for it
  broken = true;
  const Sampler sampler(kSamples, options.recipe.seed, true);
  std::int64_t position = 0;  // in the first epoch
  while (sampler.index(0, position) != kIndex) ++position;
  const std::int64_t good = position / kBatch;  // steps
  ASSERT_GT(good, 1);
  EXPECT_TRUE(testing::says(
      testing::message_of<Error>([&] { run(setup); }),
      {"sample 7 is broken", "what was learnt up to step " + std::to_string(good) + " is saved",
       "goes on"}));
  EXPECT_EQ(read_state(folder.path()).progress.step, good);
  broken = false;
  const Outcome rest = run(setup_of(options, data));
  EXPECT_TRUE(rest.result.finished);
  EXPECT_EQ(rest.result.step, undisturbed.result.step);
  EXPECT_EQ(model_in(folder.path()), model_in(undisturbed_folder.path()));
}

INSTANTIATE_TEST_SUITE_P(Setups, BrokenTraining,
                         ::testing::Values(std::tuple(1, 1, 1), std::tuple(3, 1, 1),
                                           std::tuple(2, 3, 1), std::tuple(2, 2, 3)));

TEST(EpochEnd, AStateThatIsToBeTestedWhereNoEpochEndsIsDamaged) {
  const testing::TemporaryDirectory folder;
  TrainOptions options = options_into(folder.path());
  options.max_steps = 1;
  run(options, two_steps());
  SavedState saved = read_state(folder.path());
  saved.progress.untested = EndedEpoch{};
  EXPECT_TRUE(testing::says(
      testing::message_of<FileError>([&] { make_run_setup(options, two_steps(), 1, saved); }),
      {"state.json", "at step 1, where none ends"}));
}

}  // namespace
}  // namespace ringlet::train
