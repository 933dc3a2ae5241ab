// Metrics read back: what the writer wrote, what a killed run left, and what is no metrics at all.
#include "train/telemetry/metrics_reader.h"

#include <gtest/gtest.h>

#include <cmath>
#include <string>

#include "base/files/atomic_file.h"
#include "tests/support/files.h"
#include "train/telemetry/metrics.h"

namespace ringlet::train {
namespace {

using testing::message_of;
using testing::says;

const std::string kStep =
    R"({"kind":"step","epoch":1,"step":1,"loss":2.5,"lr":0.004,"samples":128})";
const std::string kEpoch =
    R"({"kind":"epoch","epoch":1,"train_loss":0.5,"test_loss":null,"test_accuracy":0.75,)"
    R"("seconds":3,"samples_per_second":100.5,"sync_share":0.25})";

Metrics parse(const std::string& text) { return parse_metrics(text, "m.jsonl"); }
std::string error(const std::string& text) {
  return message_of<FileError>([&] { parse(text); });
}

TEST(MetricsReader, ReadsWhatTheWriterWrote) {
  const testing::TemporaryDirectory folder;
  MetricsWriter writer(folder / "m.jsonl", 0, 2);
  StepReport step{.epoch = 1, .step = 1, .loss = 0.1, .lr = 1e-30, .samples = 64, .seconds = 2};
  writer.step_done(step);
  step.step = 2;
  step.loss = 1.0 / 3;
  writer.step_done(step);
  EpochReport epoch;
  epoch.phases = {.data = 0.5, .forward = 1, .backward = 2, .sync = 0.25, .update = 0.125};
  epoch.epoch = 1;
  epoch.train_loss = NAN;
  epoch.test = {.loss = 0.3, .samples = 4, .right = 3};
  epoch.seconds = 1.5;
  writer.epoch_done(epoch);

  const Metrics metrics = read_metrics(folder / "m.jsonl");
  EXPECT_EQ(metrics.steps.step, (std::vector<std::int64_t>{1, 2}));
  EXPECT_EQ(metrics.steps.epoch, (std::vector<std::int64_t>{1, 1}));
  EXPECT_EQ(metrics.steps.loss, (std::vector<double>{0.1, 1.0 / 3}));
  EXPECT_EQ(metrics.steps.lr, (std::vector<double>{1e-30, 1e-30}));
  EXPECT_EQ(metrics.steps.samples, (std::vector<std::int64_t>{64, 64}));
  EXPECT_EQ(metrics.steps.seconds, (std::vector<double>{2, 2}));
  ASSERT_EQ(metrics.epochs.size(), 1u);
  EXPECT_EQ(metrics.epochs[0].phases.total(), epoch.phases.total());
  EXPECT_EQ(metrics.epochs[0].phases.sync, 0.25);
  EXPECT_TRUE(std::isnan(metrics.epochs[0].train_loss));
  EXPECT_EQ(metrics.epochs[0].test_loss, 0.3);
  EXPECT_EQ(metrics.epochs[0].test_accuracy, 0.75);
  EXPECT_EQ(metrics.epochs[0].seconds, 1.5);
  EXPECT_FALSE(metrics.cut_off);
}

TEST(MetricsReader, ReadsWhatStagesDid) {
  const std::string begin =
      R"({"kind":"epoch","epoch":1,"bubble":0.5,"predicted_bubble":0.25,"waiting_stage":1,)"
      R"("waiting_share":0.75,"waiting_for":"stage 0","waiting_for_share":0.5)";
  const std::optional<StagesReport> old = parse(begin + "}\n").epochs.front().stages;
  ASSERT_TRUE(old.has_value());
  EXPECT_EQ(
      in_words(*old),
      "bubble 50 % (predicted 25 %), stage 1 waited most: 75 % of the time, 50 % for stage 0");
  EXPECT_TRUE(old->stages.empty());
  const auto stages = parse(begin + R"(,"stages_busy":[0.5,0.25],"stages_before":[0,0.5]})"
                                    "\n")
                          .epochs.front()
                          .stages->stages;
  EXPECT_EQ(stages, (std::vector<StageShares>{{.busy = .5}, {.busy = .25, .before = .5}}));
  EXPECT_FALSE(parse(kEpoch + "\n").epochs.front().stages.has_value());
  for (const char* wrong : {"3", "[0,\"a\"]", "{\"a\":1}", "[null]"}) {
    EXPECT_TRUE(says(error(begin + ",\"stages_sums\":" + wrong + "}\n"),
                     {"m.jsonl: line 1", "'stages_sums'", "a list of numbers"}))
        << wrong;
  }
}

TEST(MetricsReader, PassesOverWhatItDoesNotKnow) {
  const Metrics metrics = parse(R"({"kind":"start","version":"9"})"
                                "\n\n" +
                                kEpoch + "\n" + R"({"note":1})" + "\n" +
                                R"({"kind":"step","epoch":1,"step":7,"loss":2,"lr":1,)"
                                R"("samples":8,"extra":[[1]]})"
                                "\n");
  EXPECT_EQ(metrics.steps.step, (std::vector<std::int64_t>{7}));
  EXPECT_EQ(metrics.epochs.size(), 1u);
}

TEST(MetricsReader, AlignsGradientNormsThatComeLate) {
  std::string with_norm = kStep;
  with_norm.insert(with_norm.size() - 1, R"(,"grad_norm":0.5)");
  const Metrics metrics = parse(kStep + "\n" + with_norm + "\n" + kStep + "\n");
  ASSERT_EQ(metrics.steps.grad_norm.size(), 3u);
  EXPECT_TRUE(std::isnan(metrics.steps.grad_norm[0]));
  EXPECT_EQ(metrics.steps.grad_norm[1], 0.5);
  EXPECT_TRUE(std::isnan(metrics.steps.grad_norm[2]));
  EXPECT_TRUE(parse(kStep + "\n").steps.grad_norm.empty());
}

TEST(MetricsReader, BearsALastLineThatBreaksOffAnywhere) {
  for (std::size_t cut = 1; cut < kStep.size(); ++cut) {
    const Metrics metrics = parse(kStep + "\n" + kStep.substr(0, cut));
    EXPECT_TRUE(metrics.cut_off) << cut;
    EXPECT_EQ(metrics.steps.size(), 1u) << cut;
  }
  const Metrics whole = parse(kStep + "\n" + kStep);  // only the line feed is missing
  EXPECT_FALSE(whole.cut_off);
  EXPECT_EQ(whole.steps.size(), 2u);
}

TEST(MetricsReader, NamesTheLineThatIsWrong) {
  EXPECT_TRUE(says(error(kStep + "\n{\"kind\":\n" + kStep + "\n"), {"m.jsonl: line 2", "JSON"}));
  EXPECT_TRUE(says(error(kStep + "\n[1]\n"), {"m.jsonl: line 2", "not a JSON object"}));
  EXPECT_TRUE(says(error("{\"kind\":\"step\",\"epoch\":1}\n"), {"line 1", "'step'", "missing"}));
  EXPECT_TRUE(says(error("{\"kind\":\"epoch\",\"epoch\":\"1\"}\n"), {"'epoch'", "whole number"}));
  EXPECT_TRUE(says(error("{\"kind\":\"epoch\",\"epoch\":18446744073709551615}\n"), {"'epoch'"}));
  EXPECT_TRUE(says(error("\x89PNG\r\n\x1a\n"), {"line 1", "JSON"}));
  EXPECT_TRUE(says(error(std::string("{}\n\0\n", 5)), {"line 2", "zero byte"}));
}

TEST(MetricsReader, DoesNotFollowEveryDepthOrLength) {
  EXPECT_TRUE(says(error(std::string(40'000, '[') + "\n"), {"line 1", "nested deeper than 8"}));
  EXPECT_TRUE(says(error(kStep + "\n" + std::string(kLongestMetricsLine + 1, ' ') + "\n"),
                   {"line 2 is longer than 65536 bytes"}));
  EXPECT_NO_THROW(parse(std::string(kLongestMetricsLine, ' ') + "\n"));
}

TEST(MetricsReader, SaysWhatIsNotThere) {
  const testing::TemporaryDirectory folder;
  EXPECT_TRUE(says(message_of<FileError>([&] { read_metrics(folder / "none"); }),
                   {(folder / "none").string(), "no such file"}));
  EXPECT_TRUE(says(message_of<FileError>([&] { read_metrics(folder.path()); }), {"is a folder"}));
}

}  // namespace
}  // namespace ringlet::train
