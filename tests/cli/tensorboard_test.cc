// TensorBoard itself reads what --tensorboard writes, and finds the numbers of --metrics.
#include <csignal>
#include <filesystem>
#include <map>
#include <nlohmann/json.hpp>
#include <sstream>
#include <string>
#include <utility>

#include "base/files/json_text.h"
#include "tests/cli/program.h"
#include "tests/cli/python.h"
#include "tests/support/files.h"

namespace ringlet::testing {
namespace {

using Series = std::map<std::int64_t, double>;  // by step
using AllSeries = std::map<std::string, Series>;

/// What TensorBoard says lies in a folder.
AllSeries series_in(const PythonOutcome& answer) {
  AllSeries all;
  std::istringstream text(answer.output);
  std::string tag;
  std::int64_t step = 0;
  double value = 0;
  while (text >> tag >> step >> value) {
    const bool is_new = all[tag].emplace(step, value).second;
    EXPECT_TRUE(is_new) << tag << " has step " << step << " twice";
  }
  return all;
}

/// What --metrics says, under TensorBoard's names.
AllSeries series_of(const std::filesystem::path& metrics, std::int64_t steps_per_epoch) {
  static const std::map<std::string, std::map<std::string, std::string>> kNames{
      {"step",
       {{"loss", "train/loss"}, {"lr", "train/learning_rate"}, {"grad_norm", "train/grad_norm"}}},
      {"epoch",
       {{"train_loss", "epoch/train_loss"},
        {"test_loss", "epoch/test_loss"},
        {"test_accuracy", "epoch/test_accuracy"},
        {"samples_per_second", "epoch/samples_per_second"},
        {"sync_share", "epoch/sync_share"}}}};
  AllSeries all;
  std::istringstream text(read_file(metrics));
  for (std::string line; std::getline(text, line);) {
    const auto json = parse_json(line);
    const std::string kind = json.at("kind");
    const std::int64_t step = kind == "step"
                                  ? json.at("step").get<std::int64_t>()
                                  : json.at("epoch").get<std::int64_t>() * steps_per_epoch;
    for (const auto& [field, tag] : kNames.at(kind)) all[tag][step] = json.at(field);
    if (kind == "step") {
      all["train/samples_per_second"][step] =
          json.at("samples").get<double>() / json.at("seconds").get<double>();
    }
  }
  return all;
}

void expect_equal(const AllSeries& actual, const AllSeries& expected) {
  ASSERT_EQ(actual.size(), expected.size());
  for (const auto& [tag, series] : expected) {
    ASSERT_TRUE(actual.contains(tag)) << tag;
    ASSERT_EQ(actual.at(tag).size(), series.size()) << tag;
    for (const auto& [step, value] : series) {
      ASSERT_TRUE(actual.at(tag).contains(step)) << tag << " " << step;
      EXPECT_FLOAT_EQ(static_cast<float>(actual.at(tag).at(step)), static_cast<float>(value))
          << tag;
    }
  }
}

std::size_t files_in(const std::filesystem::path& folder) {
  const std::filesystem::directory_iterator files(folder);
  return static_cast<std::size_t>(std::distance(begin(files), end(files)));
}

TEST(TensorBoard, ReadsTheNumbersOfTheMetricsFromARunThatWasInterruptedAndResumed) {
  const TemporaryDirectory folder;
  const std::string out = folder / "run", events = folder / "events";
  const Arguments flags{"--epochs", "400", "--lr", "0.001", "--tensorboard", events};
  Program program(quick_train(flags + Arguments{"--out", out}));
  ASSERT_TRUE(program.wait_for("\n    2   "));
  program.send(SIGINT);
  ASSERT_EQ(program.wait().code, 128 + SIGINT);
  EXPECT_EQ(files_in(events), 1u);

  const PythonOutcome first = run_python(python_with_tools(), "read_events.py", {events});
  if (first.lacks_a_module()) GTEST_SKIP() << first.output;
  ASSERT_EQ(first.code, 0) << first.output;
  expect_equal(series_in(first), series_of(out + "/metrics.jsonl", 4));

  ASSERT_TRUE(succeeds(
      ringlet({"train", "--data", "synthetic", "--synthetic-train", "256", "--synthetic-test", "64",
               "--resume", out, "--save-every", "100000", "--tensorboard", events})));
  EXPECT_EQ(files_in(events), 2u);
  const PythonOutcome both = run_python(python_with_tools(), "read_events.py", {events});
  ASSERT_EQ(both.code, 0) << both.output;
  expect_equal(series_in(both), series_of(out + "/metrics.jsonl", 4));
}

TEST(TensorBoard, AFolderThatCannotBeWrittenIsNamed) {
  const TemporaryDirectory folder;
  write_file(folder / "file", "");
  EXPECT_TRUE(fails_with(1, ringlet(quick_train({"--tensorboard", folder / "file"})),
                         {(folder / "file").string()}));
}

}  // namespace
}  // namespace ringlet::testing
