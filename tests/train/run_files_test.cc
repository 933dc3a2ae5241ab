// What a run leaves in its folder for others: the table of epochs, and where it ran.
#include "train/telemetry/run_files.h"

#include <gtest/gtest.h>

#include <filesystem>
#include <mutex>
#include <nlohmann/json.hpp>
#include <optional>
#include <sstream>
#include <string>
#include <utility>
#include <vector>

#include "base/files/json_text.h"
#include "tests/support/files.h"
#include "tests/train/runs.h"
#include "train/files/run_lock.h"
#include "train/telemetry/epoch_table.h"

namespace ringlet::train {
namespace {

namespace fs = std::filesystem;

constexpr const char* kHead =
    "epoch,train_loss,test_loss,test_accuracy,seconds,samples_per_second,sync_share,data_seconds,"
    "forward_seconds,backward_seconds,sync_seconds,update_seconds";

std::vector<std::string> lines_of(const std::filesystem::path& path) {
  std::vector<std::string> lines;
  std::istringstream text(testing::read_file(path));
  for (std::string line; std::getline(text, line);) lines.push_back(line);
  return lines;
}

std::vector<double> cells_of(const std::string& line) {
  std::vector<double> cells;
  std::istringstream text(line);
  for (std::string cell; std::getline(text, cell, ',');) cells.push_back(std::stod(cell));
  return cells;
}

TrainOptions options_into(const std::filesystem::path& out) {
  TrainOptions options = plain_options(2);
  options.recipe.model = "mlp";
  options.recipe.epochs = 3;
  options.files.out = out;
  return options;
}

Outcome run_with_files(const RunSetup& setup) {
  const RunFiles files(setup);
  return run(setup, files.listeners());
}

TEST(RunFiles, HaveALineAnEpochWithWhatTheListenersHear) {
  const testing::TemporaryDirectory folder;
  const RunSetup setup = make_run_setup(options_into(folder.path()), formula_splits(100), 2);
  const Outcome outcome = run_with_files(setup);
  const auto lines = lines_of(folder / "epochs.csv");
  ASSERT_EQ(lines.size(), 4u);
  EXPECT_EQ(lines[0], kHead);
  for (std::size_t i = 0; i < 3; ++i) {
    const EpochReport& told = outcome.epochs[i];
    const PhaseSeconds& phases = told.phases;
    EXPECT_EQ(cells_of(lines[i + 1]),
              (std::vector<double>{static_cast<double>(i + 1), told.train_loss, told.test.loss,
                                   told.test.accuracy(), told.seconds, told.samples_per_second,
                                   told.sync_share, phases.data, phases.forward, phases.backward,
                                   phases.sync, phases.update}));
    EXPECT_GT(phases.forward, 0);
    EXPECT_GT(phases.backward, 0);
    EXPECT_LE(phases.total(), told.seconds);
  }
}

TEST(RunFiles, GoOnWhereAResumedRunDoes) {
  const testing::TemporaryDirectory folder;
  TrainOptions options = options_into(folder.path());
  options.max_steps = 3;  // the second epoch ends early, and is reported so
  run_with_files(make_run_setup(options, formula_splits(100), 2));
  EXPECT_EQ(lines_of(folder / "epochs.csv").size(), 3u);
  EXPECT_EQ(lines_of(folder / "metrics.jsonl").size(), 5u);
  testing::write_file(folder / "epochs.csv",
                      testing::read_file(folder / "epochs.csv") + "not ours\n7");  // killed
  options.max_steps = -1;
  run_with_files(make_run_setup(options, formula_splits(100), 2, read_state(folder.path())));
  const auto lines = lines_of(folder / "epochs.csv");
  ASSERT_EQ(lines.size(), 4u);
  EXPECT_EQ(lines[0], kHead);
  for (std::size_t i = 1; i < 4; ++i) EXPECT_EQ(cells_of(lines[i])[0], static_cast<double>(i));
  EXPECT_EQ(lines_of(folder / "metrics.jsonl").size(), 6u + 3u);
}

TEST(RunFiles, HaveWhatATaskTellsOfTraining) {
  const testing::TemporaryDirectory folder;
  TrainOptions options = options_into(folder.path());
  options.recipe.loss = "arcface";
  options.recipe.embedding_size = 6;
  options.max_steps = 2;
  Outcome outcome = run_with_files(make_run_setup(options, formula_splits(100), 2));
  options.max_steps = -1;
  const Outcome rest =
      run_with_files(make_run_setup(options, formula_splits(100), 2, read_state(folder.path())));
  outcome.epochs.insert(outcome.epochs.end(), rest.epochs.begin(), rest.epochs.end());
  const auto lines = lines_of(folder / "epochs.csv");
  ASSERT_EQ(lines.size(), 4u);
  ASSERT_EQ(outcome.epochs.size(), 3u);
  EXPECT_EQ(lines[0], std::string(kHead) + ",train_target_angle,train_nearest_wrong_angle");
  for (std::size_t i = 0; i < 3; ++i) {
    const std::vector<Figure>& told = outcome.epochs[i].told;
    const auto cells = cells_of(lines[i + 1]);
    ASSERT_EQ(cells.size(), 14u);
    EXPECT_EQ(cells[12], told.at(0).value);
    EXPECT_EQ(cells[13], told.at(1).value);
    EXPECT_GT(cells[12], 1);
  }
  const auto last = parse_json(lines_of(folder / "metrics.jsonl").back());
  EXPECT_EQ(last.at("train_target_angle"), outcome.epochs[2].told[0].value);
  EXPECT_EQ(last.at("train_nearest_wrong_angle"), outcome.epochs[2].told[1].value);
}

TEST(RunFiles, ANumberThatIsNoneIsAnEmptyCell) {
  const testing::TemporaryDirectory folder;
  EpochTable table(folder / "e.csv", 0, 1);
  EpochReport report;
  report.epoch = 1;
  report.train_loss = NAN;
  report.samples_per_second = INFINITY;
  table.epoch_done(report);
  EXPECT_EQ(lines_of(folder / "e.csv")[1], "1,,0,0,0,,0,0,0,0,0,0");
}

TEST(RunFiles, SayOnWhatARunRan) {
  const testing::TemporaryDirectory folder;
  TrainOptions options = options_into(folder.path());
  options.files.data_dir = "somewhere";
  run_with_files(make_run_setup(options, formula_splits(100), 2));
  const auto record = parse_json(testing::read_file(folder / "run.json"));
  EXPECT_EQ(record.at("data").at("name"), "formula");
  EXPECT_EQ(record.at("data").at("directory"),
            (std::filesystem::current_path() / "somewhere").string());
  EXPECT_EQ(record.at("model").at("name"), "mlp");
  EXPECT_GT(record.at("model").at("parameters"), 1000);
  EXPECT_EQ(record.at("run").at("planned_steps"), 6);
  EXPECT_EQ(record.at("run").at("batch_of_rank"), (std::vector<int>{32, 32}));
  EXPECT_EQ(record.at("run").at("devices"), (std::vector<std::string>{"cpu:0", "cpu:0"}));
  EXPECT_GE(record.at("machine").at("cpu").at("cores"), 1);
  EXPECT_GT(record.at("machine").at("memory_bytes"), 0);
  EXPECT_FALSE(record.at("machine").contains("gpus"));
}

void train_with(const TrainOptions& options, bool writes_files) {
  const RunSetup setup = make_run_setup(options, formula_splits(100), 2);
  if (!writes_files) {
    train(setup, {});
    return;
  }
  const RunFiles files(setup);
  train(setup, files.listeners());
}

/// The message with which a run does not begin.
std::string refusal(const TrainOptions& options, bool writes_files = false) {
  return testing::message_of<Error>([&] { train_with(options, writes_files); });
}

TEST(RunFolder, AnotherRunIsNotReplacedUnlessTheProgramSaysSo) {
  const testing::TemporaryDirectory folder;
  TrainOptions options = options_into(folder.path());
  options.files.force = false;
  train_with(options, true);
  const std::string first = testing::read_file(folder / "model.safetensors");
  const std::string lines = testing::read_file(folder / "metrics.jsonl");
  options.recipe.model = "lenet";
  for (const bool writes_files : {false, true}) {
    EXPECT_TRUE(testing::says(refusal(options, writes_files),
                              {folder.path().string(), "holds another run", "Files::force"}));
  }
  EXPECT_EQ(testing::read_file(folder / "model.safetensors"), first);
  EXPECT_EQ(testing::read_file(folder / "metrics.jsonl"), lines);
  options.recipe.model = "mlp";
  const RunSetup again = make_run_setup(options, formula_splits(100), 2, read_state(folder.path()));
  EXPECT_NO_THROW(train(again, {}));
  options.recipe.model = "lenet";
  options.files.force = true;
  train_with(options, true);
  EXPECT_NE(testing::read_file(folder / "model.safetensors"), first);
}

TEST(RunFolder, IsClaimedWhileARunWritesThere) {
  const testing::TemporaryDirectory folder;
  const TrainOptions options = options_into(folder.path());
  {
    const RunLock lock(folder.path());
    for (const bool writes_files : {false, true}) {
      EXPECT_TRUE(testing::says(refusal(options, writes_files), {"is being written by process"}));
    }
  }
  EXPECT_NO_THROW(train_with(options, true));
}

// Files are written by name, and the name may lead to another run's folder by then.
TEST(RunFolder, OfAnotherRunIsLeftAloneByOneWhoseOwnWasMoved) {
  for (const bool is_claimed : {false, true}) {  // or it has ended already
    const testing::TemporaryDirectory runs;
    const fs::path out = runs / "run", model = out / "model.safetensors";
    fs::create_directory(out);
    RunSetup setup = make_run_setup(options_into(out), formula_splits(100), 2);
    std::optional<RunLock> others;
    std::once_flag once;
    setup.stop_requested = [&] {
      std::call_once(once, [&] {
        fs::rename(out, runs / "moved");
        fs::create_directory(out);
        testing::write_file(model, "of another run");
        if (is_claimed) others.emplace(out);
      });
      return false;
    };
    EXPECT_TRUE(testing::says(testing::message_of<Error>([&] { (void)train(setup, {}); }),
                              {out.string(), "is not the run's folder any more"}));
    EXPECT_EQ(testing::read_file(model), "of another run");
    EXPECT_FALSE(fs::exists(out / "state"));
    EXPECT_EQ(fs::exists(out / ".ringlet.lock"), is_claimed);
  }
}

TEST(RunFolder, AStateThatNobodyHasReadIsNotPassedOver) {
  const testing::TemporaryDirectory folder;
  TrainOptions options = options_into(folder.path());
  options.files.resume = folder.path();
  EXPECT_TRUE(testing::says(refusal(options), {"Files::resume", "read_state()"}));
}

TEST(RunFolder, FilesThatNobodyWritesAreNamed) {
  const testing::TemporaryDirectory folder;
  const std::vector<std::pair<std::string, std::filesystem::path Files::*>> named{
      {"Files::metrics", &Files::metrics},
      {"Files::tensorboard", &Files::tensorboard},
      {"Files::trace", &Files::trace}};
  for (const auto& [name, member] : named) {
    TrainOptions options = options_into("");
    options.files.*member = folder / "asked";
    EXPECT_TRUE(testing::says(refusal(options), {name, "is written by"}));
    if (name != "Files::trace") {
      EXPECT_NO_THROW(train_with(options, true));
      EXPECT_TRUE(std::filesystem::exists(folder / "asked"));
      std::filesystem::remove_all(folder / "asked");
    }
  }
}

TEST(RunFiles, OneFileThatIsNamedTwiceIsWrittenOnce) {
  const testing::TemporaryDirectory folder;
  TrainOptions options = options_into(folder.path());
  options.files.metrics = folder.path() / "." / "metrics.jsonl";
  run_with_files(make_run_setup(options, formula_splits(100), 2));
  EXPECT_EQ(lines_of(folder / "metrics.jsonl").size(), 6u + 3u);
  options.files.metrics = folder / "more.jsonl";
  options.files.force = true;
  run_with_files(make_run_setup(options, formula_splits(100), 2));
  EXPECT_EQ(lines_of(folder / "more.jsonl").size(), 6u + 3u);
  EXPECT_EQ(testing::read_file(folder / "more.jsonl"),
            testing::read_file(folder / "metrics.jsonl"));
}

}  // namespace
}  // namespace ringlet::train
