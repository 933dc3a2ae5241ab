// Stopping and going on is as if one had never stopped.
#include <gtest/gtest.h>

#include <atomic>
#include <map>
#include <nlohmann/json.hpp>
#include <sstream>
#include <string>
#include <utility>
#include <vector>

#include "base/files/atomic_file.h"
#include "base/files/json_text.h"
#include "tests/support/files.h"
#include "tests/train/runs.h"
#include "train/telemetry/metrics.h"

namespace ringlet::train {
namespace {

constexpr std::int64_t kSamples = 100, kBatch = 32,
                       kSteps = 8;  // two epochs of 3 batches and a bit

data::Splits small_data() {
  static const data::Splits data = formula_splits(kSamples, 30);
  return data;
}

TrainOptions with_recipe(TrainOptions options) {
  options.recipe.batch_size = kBatch;
  options.recipe.epochs = 2;
  options.recipe.schedule = ScheduleKind::one_cycle;
  options.recipe.cycle_momentum = true;
  options.recipe.shuffle = true;
  return options;
}

/// Runs with a metrics file; goes on with what is in `out` when `resume`.
Outcome run_in(const std::filesystem::path& out, TrainOptions options, bool resume) {
  std::optional<SavedState> saved;
  if (resume) {
    saved = read_state(out);
    options.recipe = saved->recipe;
  }
  options.files.out = out;
  const int ranks = static_cast<int>(options.execution.devices.size());
  const RunSetup setup = make_run_setup(options, small_data(), ranks, saved);
  MetricsWriter metrics(out / "metrics.jsonl", setup.first_step, setup.partition.steps_per_epoch());
  return run(setup, {&metrics});
}

/// What a metrics file says of the learning: everything but times.
struct Learnt {
  std::vector<std::pair<int, double>> step_losses;
  std::vector<std::pair<int, double>> train_losses, test_losses;  // by epoch
  bool operator==(const Learnt&) const = default;
};

Learnt read_metrics(const std::filesystem::path& out) {
  Learnt learnt;
  std::istringstream lines(testing::read_file(out / "metrics.jsonl"));
  for (std::string line; std::getline(lines, line);) {
    const auto json = parse_json(line);
    if (json.at("kind") == "step") {
      learnt.step_losses.emplace_back(json.at("step"), json.at("loss"));
    } else {
      learnt.train_losses.emplace_back(json.at("epoch"), json.at("train_loss"));
      learnt.test_losses.emplace_back(json.at("epoch"), json.at("test_loss"));
    }
  }
  return learnt;
}

struct Case {
  std::string name;
  TrainOptions first, second;  // before and after the stop
};

void PrintTo(const Case& c, std::ostream* out) { *out << c.name; }

std::vector<Case> cases() {
  std::vector<Case> all{{"exact", exact_options(1), exact_options(1)},
                        {"exact_from_4_to_1", exact_options(4), exact_options(1)},
                        {"exact_from_1_to_2", exact_options(1), exact_options(2)},
                        {"fast_1", plain_options(1), plain_options(1)},
                        {"fast_3", plain_options(3), plain_options(3)}};
  all.push_back(all[0]);
  all.back().name = "exact_accumulate";
  all.back().first.recipe.accumulate = 2;
  all.push_back(all[4]);  // going on, it is the state that knows of bf16
  all.back().name = "bf16_3";
  all.back().first.recipe.grad_dtype = DType::bf16;
  all.push_back({"f16_exact_from_4_to_1", normed(exact_options(4)), normed(exact_options(1))});
  all.push_back({"f16_3", normed(plain_options(3)), normed(plain_options(3))});
  for (std::size_t i = all.size() - 2; i < all.size(); ++i) {
    all[i].first.recipe.precision = Precision::f16;
    all[i].first.execution.emulate_precision = all[i].second.execution.emulate_precision = true;
  }
  all.push_back({"stages_from_3_to_1", normed(plain_options(3)), normed(plain_options(1))});
  all.back().first.recipe.accumulate = 4;
  all.back().first.execution.stages = "3";
  all.push_back({"stages_from_1_to_2", normed(plain_options(2)), normed(plain_options(4))});
  all.back().first.recipe.accumulate = 3;
  all.back().second.execution.stages = "2";
  all.push_back({"stages_exact_f16", normed(exact_options(4)), normed(exact_options(4))});
  all.back().first.execution.stages = "conv1..block,avgpool..fc";
  all.back().second.execution.stages = "4";
  all.back().first.recipe.precision = Precision::f16;
  all.back().first.execution.emulate_precision = all.back().second.execution.emulate_precision =
      true;
  all.push_back({"ema_exact_from_4_to_1", normed(exact_options(4)), normed(exact_options(1))});
  all.back().first.recipe.ema = 0.7;
  all.push_back({"ema_stages_from_3_to_1", normed(plain_options(3)), normed(plain_options(1))});
  all.back().first.recipe.ema = 0.7;
  all.back().first.recipe.accumulate = 4;
  all.back().first.execution.stages = "3";
  for (Case& c : all) {
    c.first = with_recipe(c.first);
    c.second = with_recipe(c.second);
  }
  return all;
}

class Resume : public ::testing::TestWithParam<Case> {};

TEST_P(Resume, AtAnyStepIsAsIfNeverStopped) {
  const testing::TemporaryDirectory whole_folder;
  const Outcome whole = run_in(whole_folder.path(), GetParam().first, false);
  ASSERT_EQ(whole.result.step, kSteps);
  for (std::int64_t stop = 0; stop <= kSteps; ++stop) {
    SCOPED_TRACE("stopped after step " + std::to_string(stop));
    const testing::TemporaryDirectory folder;
    TrainOptions first = GetParam().first;
    first.max_steps = stop;
    EXPECT_EQ(run_in(folder.path(), first, false).result.step, stop);
    const Outcome rest = run_in(folder.path(), GetParam().second, true);
    EXPECT_EQ(rest.result.step, kSteps);
    EXPECT_EQ(static_cast<std::int64_t>(rest.steps.size()), kSteps - stop);
    EXPECT_TRUE(bytes_of(rest.state) == bytes_of(whole.state));
    EXPECT_TRUE(testing::read_file(folder / "model.safetensors") ==
                testing::read_file(whole_folder / "model.safetensors"));
    EXPECT_EQ(read_metrics(folder.path()), read_metrics(whole_folder.path()));
    EXPECT_EQ(read_state(folder.path()).loss_scale, read_state(whole_folder.path()).loss_scale);
  }
}

INSTANTIATE_TEST_SUITE_P(Modes, Resume, ::testing::ValuesIn(cases()),
                         ::testing::PrintToStringParamName());

Outcome go_on_with_epochs(const std::filesystem::path& out, TrainOptions options, int epochs) {
  options.recipe.epochs = epochs;
  options.files.out = out;
  return run(make_run_setup(options, small_data(), 1, read_state(out)));
}

TEST(Length, OfAConstantScheduleIsContinuedBitForBit) {
  const testing::TemporaryDirectory folder, whole_folder;
  TrainOptions options = with_recipe(plain_options(1));
  options.recipe.schedule = ScheduleKind::step;
  options.recipe.cycle_momentum = false;
  options.recipe.step_epochs = 1;
  run_in(folder.path(), options, false);
  TrainOptions longer = options;
  longer.recipe.epochs = 3;
  const Outcome whole = run_in(whole_folder.path(), longer, false);
  const Outcome rest = go_on_with_epochs(folder.path(), options, 3);
  EXPECT_EQ(rest.steps.size(), 4U);
  EXPECT_TRUE(bytes_of(rest.state) == bytes_of(whole.state));
  const SavedState saved = read_state(folder.path());
  EXPECT_EQ(saved.recipe.epochs, 3);
  EXPECT_EQ(saved.progress.lengths, (std::vector<FormerLength>{{kSteps, 2}}));
}

TEST(Length, StretchesAFormulaOfTheWholeRun) {
  const testing::TemporaryDirectory folder;
  TrainOptions options = with_recipe(plain_options(1));
  options.recipe.schedule = ScheduleKind::cosine;
  options.recipe.cycle_momentum = false;
  options.max_steps = 4;
  run_in(folder.path(), options, false);
  options.max_steps = -1;
  const Outcome rest = go_on_with_epochs(folder.path(), options, 4);
  Schedule stretched{static_cast<const RateSpec&>(options.recipe),
                     static_cast<const ScheduleSpec&>(options.recipe), 16, 4};
  ASSERT_EQ(rest.steps.size(), 12U);
  for (const StepReport& step : rest.steps) {
    EXPECT_EQ(step.lr, stretched.at(step.step - 1).lr) << step.step;
  }
}

TEST(Length, MayBeAllThatIsDoneAndNotLess) {
  const testing::TemporaryDirectory folder;
  TrainOptions options = with_recipe(plain_options(1));
  options.max_steps = 5;
  run_in(folder.path(), options, false);
  options.max_steps = -1;
  const auto message =
      testing::message_of<ContractError>([&] { go_on_with_epochs(folder.path(), options, 1); });
  EXPECT_TRUE(testing::says(message, {"--epochs 1: the run has done 5 steps of 4", "take 2"}));
  EXPECT_EQ(go_on_with_epochs(folder.path(), options, 2).steps.size(), 3U);
  EXPECT_EQ(go_on_with_epochs(folder.path(), options, 2).steps.size(), 0U);
}

TEST(Interruption, StopsAllReplicasAfterTheSameStepAndSaves) {
  const testing::TemporaryDirectory whole_folder, folder;
  const TrainOptions options = with_recipe(exact_options(4));
  const Outcome whole = run_in(whole_folder.path(), options, false);

  TrainOptions interrupted = options;
  interrupted.files.out = folder.path();
  RunSetup setup = make_run_setup(interrupted, small_data(), 4);
  std::atomic<int> asked{0};
  constexpr int kInTest = 5;  // a pass of rank 0, and each rank's end
  setup.stop_requested = [&asked] { return asked++ == 4 * 4 + kInTest + 1; };  // one, in step 5
  const Outcome first = run(setup);
  EXPECT_TRUE(first.result.interrupted);
  EXPECT_FALSE(first.result.finished);
  EXPECT_EQ(first.result.step, 5);
  EXPECT_FALSE(std::filesystem::exists(folder / "model.safetensors"));
  EXPECT_EQ(read_state(folder.path()).progress.step, first.result.step);
  EXPECT_TRUE(bytes_of(run_in(folder.path(), options, true).state) == bytes_of(whole.state));
}

TEST(Interruption, InTheLastStepIsAFinishedRun) {
  RunSetup setup = make_run_setup(with_recipe(plain_options(1)), small_data(), 1);
  constexpr int kInTest = 2;  // of the first epoch
  setup.stop_requested = [step = 0]() mutable { return ++step == kSteps + kInTest; };
  const Outcome outcome = run(setup);
  EXPECT_TRUE(outcome.result.finished);
  EXPECT_FALSE(outcome.result.interrupted);
}

TEST(Resume, SaysWhatIsInTheWay) {
  const testing::TemporaryDirectory folder;
  TrainOptions options = with_recipe(plain_options(1));
  options.max_steps = 1;
  run_in(folder.path(), options, false);
  const SavedState saved = read_state(folder.path());
  EXPECT_TRUE(testing::says(testing::message_of<FileError>([&] {
                              make_run_setup(options, formula_splits(kSamples - 1), 1, saved);
                            }),
                            {folder.path().string(), "other data", "99 images"}));
}

TEST(Save, EverySoManyStepsAndAtTheEnd) {
  const testing::TemporaryDirectory folder;
  struct Saves : public RunListener {
    void step_done(const StepReport& report) override { step = report.step; }
    void saved(const std::string& path) override { ++count[{step, path}]; }
    std::int64_t step = 0;
    std::map<std::pair<std::int64_t, std::string>, int> count;
  } saves;
  TrainOptions options = with_recipe(plain_options(2));
  options.files.out = folder.path();
  options.files.save_every = 3;
  run(options, small_data(), {&saves});
  const std::string state = (folder / "state").string();
  const std::map<std::pair<std::int64_t, std::string>, int> expected{
      {{3, state}, 1},
      {{6, state}, 1},
      {{8, state}, 1},
      {{8, (folder / "model.safetensors").string()}, 1}};
  EXPECT_EQ(saves.count, expected);
}

}  // namespace
}  // namespace ringlet::train
