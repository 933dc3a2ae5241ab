// What a run tells other programs: lines of metrics, and a trace.
#include <gtest/gtest.h>

#include <cmath>
#include <map>
#include <nlohmann/json.hpp>
#include <set>
#include <sstream>
#include <string>
#include <vector>

#include "base/files/atomic_file.h"
#include "base/files/json_text.h"
#include "tests/support/files.h"
#include "tests/train/runs.h"
#include "train/loop/run_reporter.h"
#include "train/telemetry/metrics.h"
#include "train/telemetry/trace_reader.h"
#include "train/telemetry/trace_writer.h"

namespace ringlet::train {
namespace {

using nlohmann::json;

std::vector<json> lines_of(const std::filesystem::path& path) {
  std::vector<json> lines;
  std::istringstream text(testing::read_file(path));
  for (std::string line; std::getline(text, line);) lines.push_back(parse_json(line));
  return lines;
}

std::set<std::string> keys_of(const json& object) {
  std::set<std::string> keys;
  for (const auto& [key, value] : object.items()) keys.insert(key);
  return keys;
}

StepReport step_report(std::int64_t epoch, std::int64_t step) {
  StepReport report;
  report.epoch = epoch;
  report.step = step;
  report.loss = 0.1;
  report.lr = 1e-30;
  report.samples = 64;
  return report;
}

EpochReport epoch_report(std::int64_t epoch) {
  EpochReport report;
  report.epoch = epoch;
  report.train_loss = NAN;  // JSON has no word for it
  return report;
}

// Under f16 all steps of a short epoch may be skipped. 0 / 0 is printed as "-nan".
TEST(RunReporter, GivesALossOfNothingNoSign) {
  struct Listener : RunListener {
    void step_done(const StepReport& report) override { losses.push_back(report.loss); }
    void epoch_done(const EpochReport& report) override { losses.push_back(report.train_loss); }
    std::vector<double> losses;
  } listener;
  const RunSetup setup = make_run_setup(plain_options(1), formula_splits(64), 1);
  RunListener* const listeners[] = {&listener};
  RunReporter reporter(setup, listeners);
  reporter.step_done(1, {.loss = -NAN, .samples = 64}, 0.1, {});
  reporter.epoch_done({.step = 1}, EndedEpoch(), {});
  ASSERT_EQ(listener.losses.size(), 2U);
  for (const double loss : listener.losses) {
    EXPECT_TRUE(std::isnan(loss));
    EXPECT_FALSE(std::signbit(loss));
  }
}

TEST(Metrics, HaveALineAStepAndALineAnEpoch) {
  const testing::TemporaryDirectory folder;
  TrainOptions options = plain_options(2);
  options.recipe.model = "mlp";
  options.recipe.epochs = 2;
  MetricsWriter metrics(folder / "m.jsonl", 0, 3);
  const Outcome outcome = run(options, formula_splits(150), {&metrics});  // 64, 64, 22
  const auto lines = lines_of(folder / "m.jsonl");
  ASSERT_EQ(lines.size(), 8u);
  const std::set<std::string> step_keys{"kind", "epoch",   "step",      "loss",
                                        "lr",   "samples", "grad_norm", "seconds"};
  const std::set<std::string> epoch_keys{
      "kind",          "epoch",           "train_loss",         "test_loss",
      "test_accuracy", "seconds",         "samples_per_second", "sync_share",
      "data_seconds",  "forward_seconds", "backward_seconds",   "sync_seconds",
      "update_seconds"};
  double sum = 0;
  for (std::size_t i = 0; i < 3; ++i) {
    EXPECT_EQ(keys_of(lines[i]), step_keys);
    EXPECT_EQ(lines[i].at("kind"), "step");
    EXPECT_EQ(lines[i].at("epoch"), 1);
    EXPECT_EQ(lines[i].at("step"), i + 1);
    EXPECT_EQ(lines[i].at("lr"), 0.05);
    EXPECT_EQ(lines[i].at("samples"), i < 2 ? 64 : 22);
    EXPECT_EQ(lines[i].at("loss"), outcome.steps[i].loss);
    EXPECT_EQ(lines[i].at("grad_norm"), outcome.steps[i].grad_norm);
    EXPECT_EQ(lines[i].at("seconds"), outcome.steps[i].seconds);
    sum += lines[i].at("loss").get<double>() * lines[i].at("samples").get<double>();
  }
  EXPECT_EQ(lines[4].at("step"), 4);
  EXPECT_EQ(lines[4].at("epoch"), 2);
  EXPECT_EQ(keys_of(lines[3]), epoch_keys);
  EXPECT_EQ(lines[3].at("kind"), "epoch");
  EXPECT_EQ(lines[3].at("epoch"), 1);
  EXPECT_NEAR(lines[3].at("train_loss").get<double>(), sum / 150, 1e-6);
  EXPECT_EQ(lines[3].at("test_loss"), outcome.epochs[0].test.loss);
  EXPECT_EQ(lines[3].at("test_accuracy"), outcome.epochs[0].test.accuracy());
  EXPECT_GT(lines[3].at("seconds"), 0);
  EXPECT_NEAR(
      lines[3].at("samples_per_second").get<double>() * lines[3].at("seconds").get<double>(), 150,
      1e-3);
  EXPECT_GE(lines[3].at("sync_share"), 0);
  EXPECT_LE(lines[3].at("sync_share"), 1);
}

TEST(Metrics, AResumedRunDropsWhatItWillSayAgain) {
  const testing::TemporaryDirectory folder;
  const auto path = folder / "m.jsonl";
  {
    MetricsWriter metrics(path, 0, 2);
    for (std::int64_t step = 1; step <= 4; ++step) {
      metrics.step_done(step_report((step + 1) / 2, step));
      if (step % 2 == 0) metrics.epoch_done(epoch_report(step / 2));
    }
  }
  EXPECT_TRUE(lines_of(path)[2].at("train_loss").is_null());
  testing::write_file(path, testing::read_file(path) + "{\"kind\":\"step\",\"epo");  // killed
  { MetricsWriter metrics(path, 3, 2); }
  const auto kept = lines_of(path);
  ASSERT_EQ(kept.size(), 4u);  // steps 1, 2, epoch 1, step 3
  EXPECT_EQ(kept[2].at("kind"), "epoch");
  EXPECT_EQ(kept[3].at("step"), 3);
  { MetricsWriter metrics(path, 0, 2); }
  EXPECT_EQ(testing::read_file(path), "");
}

TEST(Metrics, ForeignLinesAreDropped) {
  const testing::TemporaryDirectory folder;
  const auto path = folder / "m.jsonl";
  testing::write_file(path,
                      "{\"kind\":5}\n[1]\n{\"kind\":\"step\",\"step\":\"one\"}\nhello\n"
                      "{\"kind\":\"step\",\"step\":1}\n");
  { MetricsWriter metrics(path, 1, 2); }
  const auto kept = lines_of(path);
  ASSERT_EQ(kept.size(), 1u);
  EXPECT_EQ(kept[0].at("step"), 1);
}

TEST(Metrics, AFileThatCannotBeWrittenIsNamed) {
  EXPECT_TRUE(testing::says(
      testing::message_of<FileError>([] { MetricsWriter metrics("/no/such/m.jsonl", 0, 1); }),
      {"/no/such/m.jsonl"}));
}

/// Spans ("ph": "X") of one rank by name.
std::map<std::string, std::vector<json>> spans_of(const json& trace, int rank) {
  std::map<std::string, std::vector<json>> spans;
  for (const json& event : trace.at("traceEvents")) {
    if (event.at("ph") == "X" && event.at("pid") == rank) spans[event.at("name")].push_back(event);
  }
  return spans;
}

TEST(Trace, ShowsWhatEveryRankDid) {
  const testing::TemporaryDirectory folder;
  constexpr std::size_t kSteps = 3;
  TrainOptions options = plain_options(2);
  options.execution.bucket_kb = 0;
  TraceWriter trace;
  train(make_run_setup(options, formula_splits(kSteps * 64), 2), {}, &trace);
  trace.write(folder / "trace.json");
  const json document = parse_json(testing::read_file(folder / "trace.json"));
  for (const int rank : {0, 1}) {
    auto spans = spans_of(document, rank);
    for (const char* name :
         {"backward conv1", "backward conv2", "backward fc1", "backward fc2", "update", "data"}) {
      EXPECT_EQ(spans[name].size(), kSteps) << name;
    }
    for (const char* name : {"forward conv1", "forward conv2", "forward fc1", "forward fc2"}) {
      EXPECT_GE(spans[name].size(), kSteps) << name;  // evaluation besides
    }
    std::size_t collectives = 0;
    for (const auto& [name, list] : spans) {
      if (name.starts_with("bucket ")) collectives += list.size();
    }
    EXPECT_EQ(collectives, 8 * kSteps);
    ASSERT_GE(spans["exchange"].size(), 2 * collectives);  // two a ring of two
    for (const json& exchange : spans["exchange"]) {
      EXPECT_EQ(exchange.at("args").at("peer"), 1 - rank);
      EXPECT_GE(exchange.at("args").at("bytes"), 0);
      EXPECT_EQ(exchange.at("tid"), 2);
    }
    for (const auto& [name, list] : spans) {
      for (const json& span : list) {
        EXPECT_GE(span.at("ts"), 0) << name;
        EXPECT_GE(span.at("dur"), 0) << name;
      }
    }
  }
}

TEST(Trace, EscapesNames) {
  const testing::TemporaryDirectory folder;
  TraceWriter trace;
  const auto device = open_device({});
  {
    const TraceWriter::Recording recording(&trace, 3, *device);
    device->compute().tracer()->add("a \"quoted\" \\ name\n", "phase", 1000, 2500);
  }
  EXPECT_EQ(device->compute().tracer(), nullptr);
  trace.write(folder / "trace.json");
  const json document = parse_json(testing::read_file(folder / "trace.json"));
  const auto spans = spans_of(document, 3);
  ASSERT_TRUE(spans.contains("a \"quoted\" \\ name\n"));
  EXPECT_EQ(spans.at("a \"quoted\" \\ name\n")[0].at("dur"), 1.5);
}

TEST(Trace, OfANameCutWithinALetterIsStillJson) {
  const testing::TemporaryDirectory folder;
  TraceWriter trace;
  const auto device = open_device({});
  {
    const TraceWriter::Recording recording(&trace, 0, *device);
    std::string name = "x";
    for (int i = 0; i < 30; ++i) name += "\u00fc";  // two bytes each, and a span has room for 47
    device->compute().tracer()->add(name, "phase", 1000, 2500);
  }
  trace.write(folder / "trace.json");
  const json document = parse_json(testing::read_file(folder / "trace.json"));
  EXPECT_EQ(spans_of(document, 0).size(), 1u);
}

TEST(Trace, EndsAtItsLimitAndSaysWhatIsLeftOut) {
  const testing::TemporaryDirectory folder;
  TraceWriter trace(5);
  const auto device = open_device({});
  for (const int rank : {0, 1}) {  // the limit is that of both
    const TraceWriter::Recording recording(&trace, rank, *device);
    for (int i = 0; i < 4; ++i) {
      device->compute().tracer()->add("work", "kernel", 1000 * i, 1000 * i + 500);
    }
  }
  EXPECT_EQ(trace.left_out(), 3);
  trace.write(folder / "trace.json");
  std::int64_t spans = 0;
  const TraceNames names = read_trace(folder / "trace.json", [&](const TraceSpan&) { ++spans; });
  EXPECT_EQ(spans, 5);
  EXPECT_EQ(names.left_out, 3);
  const std::string text = testing::read_file(folder / "trace.json");
  EXPECT_NE(text.find("the trace is full"), text.npos);
}

TEST(Trace, WithoutALimitHasAll) {
  TraceWriter trace(0);
  const auto device = open_device({});
  {
    const TraceWriter::Recording recording(&trace, 0, *device);
    for (int i = 0; i < 9; ++i) device->compute().tracer()->add("work", "kernel", i, i + 1);
    EXPECT_EQ(device->compute().tracer()->spans().size(), 9u);
  }
  EXPECT_EQ(trace.left_out(), 0);
}

}  // namespace
}  // namespace ringlet::train
