// Runs that end well: what they print, write and leave behind, whatever the number of replicas.
#include <sched.h>

#include <algorithm>
#include <cmath>
#include <filesystem>
#include <iterator>
#include <nlohmann/json.hpp>
#include <regex>
#include <set>
#include <sstream>
#include <thread>

#include "base/files/json_text.h"
#include "base/processors.h"
#include "kernels/cuda_devices.h"
#include "tests/cli/program.h"
#include "tests/support/files.h"
#include "train/telemetry/console.h"

namespace ringlet::testing {
namespace {

using nlohmann::json;

std::vector<json> lines_of(const std::filesystem::path& file) {
  std::istringstream text(read_file(file));
  std::vector<json> lines;
  for (std::string line; std::getline(text, line);) lines.push_back(parse_json(line));
  return lines;
}

std::set<std::string> keys_of(const json& object) {
  std::set<std::string> keys;
  for (const auto& [key, value] : object.items()) keys.insert(key);
  return keys;
}

/// What `eval` says of the mlp in a folder, but for the line that names the file.
std::string evaluation_of(const std::filesystem::path& out, const std::string& replicas) {
  const Outcome outcome = ringlet({"eval", "--replicas", replicas, "--checkpoint", out.string()});
  EXPECT_TRUE(succeeds(outcome));
  return outcome.out.substr(outcome.out.find('\n'));
}

/// Threads of a run of one replica while it trains.
std::ptrdiff_t threads_of_run(const std::string& overlap) {
  Program program(quick_train({"--epochs", "100000", "--lr", "0.001", "--overlap", overlap}),
                  {.environment = {{"OPENBLAS_NUM_THREADS", "1"}}});
  EXPECT_TRUE(program.wait_for("\n    1   "));
  const auto threads =
      std::filesystem::directory_iterator("/proc/" + std::to_string(program.pid()) + "/task");
  return std::distance(begin(threads), end(threads));
}

TEST(Run, SaysAtTheStartThatOpenBlasIsAnotherBuild) {
  const auto beside = std::filesystem::read_symlink("/proc/self/exe").parent_path();
  const auto run_with = [&](const std::string& build) {
    return ringlet(quick_train({"--max-steps", "1"}),
                   {.environment = {{"LD_PRELOAD", beside / "libringlet_other_openblas.so"},
                                    {"ASAN_OPTIONS", "verify_asan_link_order=0"},
                                    {"OTHER_OPENBLAS", build}}});
  };
  for (const auto& [build, name] : {std::pair{"0", "serial"}, std::pair{"2", "OpenMP"}}) {
    const Outcome outcome = run_with(build);
    EXPECT_EQ(outcome.code, 0) << outcome.err;
    EXPECT_TRUE(holds(outcome.err, {"warning: the OpenBLAS that was found is the ", name,
                                    " build, and Ringlet needs the one for POSIX threads"}));
  }
  EXPECT_EQ(run_with("1").err.find("OpenBLAS"), std::string::npos);
}

TEST(Run, OverlapsWhereAProcessorIsLeftOfThoseThatItMayUse) {
  std::thread([] {
    const std::vector<int> allowed = allowed_processors();
    const std::ptrdiff_t off = threads_of_run("off");
    EXPECT_EQ(threads_of_run("on"), off + 1);
    if (usable_processors() > 1) {
      EXPECT_EQ(threads_of_run("auto"), off + 1);
    }
    cpu_set_t one;
    CPU_ZERO(&one);
    CPU_SET(static_cast<std::size_t>(allowed.front()), &one);
    ASSERT_EQ(sched_setaffinity(0, sizeof one, &one), 0);
    EXPECT_EQ(threads_of_run("auto"), off) << "bound to one processor";
  }).join();
}

TEST(Run, ShowsTheTableAndTheClassesInPlainText) {
  const Outcome outcome = ringlet(quick_train({"--epochs", "2"}));
  ASSERT_TRUE(succeeds(outcome));
  EXPECT_TRUE(holds(outcome.out, {"2 epochs of 4 steps", "64 samples a step", "epoch   train loss",
                                  "test accuracy", "samples/s", "in sync", "\n    1   ",
                                  "\n    2   ", "T-shirt/top", "Ankle boot", "\nall "}));
  EXPECT_EQ(outcome.out.find('\x1b'), std::string::npos) << "an escape code";
  EXPECT_EQ(outcome.out.find('\r'), std::string::npos) << "a carriage return";
}

TEST(Run, GivesAClassWithoutSamplesNoAccuracy) {
  const Outcome outcome = ringlet(quick_train({"--synthetic-test", "4"}));
  ASSERT_TRUE(succeeds(outcome));
  EXPECT_TRUE(std::regex_search(outcome.out, std::regex("\n[^\n]+ +0 +0 +-\n"))) << outcome.out;
  EXPECT_TRUE(std::regex_search(outcome.out, std::regex("\n[^\n]+ +[01] +1 +[0-9.]+ %\n")));
}

TEST(Run, SaysWhatEachReplicaGets) {
  EXPECT_TRUE(holds(ringlet(quick_train({"--replicas", "2"})).out, {"2 replicas x 32"}));
  EXPECT_TRUE(holds(ringlet(quick_train({"--replicas", "3"})).out, {"22 + 21 + 21 over 3"}));
}

TEST(Run, OnFourIsEvaluatedOnOneAndGoesOnOnTwo) {
  const TemporaryDirectory folder;
  const std::string out = folder / "run";
  ASSERT_TRUE(succeeds(
      ringlet(quick_train({"--exact", "--replicas", "4", "--max-steps", "2", "--out", out}))));
  const std::string on_one = evaluation_of(out, "1");
  EXPECT_TRUE(holds(on_one, {"all ", "64 "}));
  EXPECT_EQ(on_one, evaluation_of(out, "3")) << "each sample counts once for any number";

  ASSERT_TRUE(succeeds(ringlet({"train", "--resume", out, "--replicas", "2"})));
  const std::string whole = folder / "whole";
  ASSERT_TRUE(succeeds(ringlet(quick_train({"--exact", "--out", whole}))));
  EXPECT_EQ(read_file(folder.path() / "run" / "model.safetensors"),
            read_file(folder.path() / "whole" / "model.safetensors"));
}

TEST(Run, IsFinishedOnlyOnce) {
  const TemporaryDirectory folder;
  const std::string out = folder / "run";
  ASSERT_TRUE(succeeds(ringlet(quick_train({"--out", out}))));
  const std::string model = read_file(folder / "run/model.safetensors");
  const Outcome again = ringlet({"train", "--resume", out});
  EXPECT_TRUE(succeeds(again));
  EXPECT_TRUE(holds(again.out, {"nothing was left to do: 4 of 4 steps"}));
  const Outcome fewer = ringlet({"train", "--resume", out, "--max-steps", "2"});
  EXPECT_TRUE(succeeds(fewer));
  EXPECT_TRUE(holds(fewer.out, {"left to do: 4 steps were done before, and 2 were asked for"}));
  EXPECT_EQ(model, read_file(folder / "run/model.safetensors"));
}

int peak_memory_of_a_run() {
  const Outcome outcome = ringlet(quick_train({}));
  EXPECT_TRUE(succeeds(outcome));
  std::smatch found;
  const bool told = std::regex_search(outcome.out, found, std::regex("peak memory (\\d+) MiB"));
  EXPECT_TRUE(told) << outcome.out;
  return told ? std::stoi(found[1]) : 0;
}

TEST(Trace, IsOfItsFirstSpansAndSaysHowManyAreLeftOut) {
  const TemporaryDirectory folder;
  const std::string file = folder / "trace.json";
  const Outcome outcome = ringlet(quick_train({"--trace", file, "--trace-spans", "50"}));
  EXPECT_TRUE(succeeds(outcome));
  EXPECT_TRUE(holds(outcome.out, {"it was full: ", "later spans are left out", "--trace-spans 0"}));
  std::size_t spans = 0;
  const json trace = parse_json(read_file(file));
  for (const json& event : trace.at("traceEvents")) {
    spans += event.at("ph") == "X" ? 1 : 0;
  }
  EXPECT_EQ(spans, 50u);
  EXPECT_TRUE(holds(ringlet({"inspect", file}).out, {"the trace was full", "--trace-spans"}));
  const Outcome all = ringlet(quick_train({"--trace", folder / "all.json"}));
  EXPECT_EQ(all.out.find("it was full"), all.out.npos);
}

TEST(Trace, IsWrittenByARunThatFails) {
  const TemporaryDirectory folder;
  const std::string file = folder / "trace.json";
  EXPECT_TRUE(fails_with(5, ringlet(quick_train({"--trace", file, "--lr", "1e30"})), {"--lr"}));
  std::size_t spans = 0;
  const json trace = parse_json(read_file(file));
  for (const json& event : trace.at("traceEvents")) {
    spans += event.at("ph") == "X" ? 1 : 0;
  }
  EXPECT_GT(spans, 0U);
}

TEST(PeakMemory, IsNotThatOfWhoStartedTheRun) {
  constexpr int kMebibytes = 512;
  const int alone = peak_memory_of_a_run();
  const std::string ballast(std::size_t{kMebibytes} << 20, 'x');  // of this process
  EXPECT_GT(alone, 0);
  EXPECT_LT(peak_memory_of_a_run(), alone + kMebibytes / 2);
  EXPECT_EQ(ballast.back(), 'x');  // it was there all the time
}

TEST(BenchTrain, SaysWhyReplicasTakeLonger) {
  const TemporaryDirectory folder;
  const Outcome outcome = ringlet({"bench", "train", "--model", "lenet-d2l", "--synthetic-train",
                                   "256", "--batch-size", "16", "--replicas", "2", "--steps", "2",
                                   "--why", "--why-seconds", "1", "--json", folder / "f.json"});
  ASSERT_TRUE(succeeds(outcome));
  EXPECT_TRUE(holds(outcome.out, {"half of one replica's time", "a smaller share is slower",
                                  "what does not shrink", "a step of 2 replicas"}));
  const nlohmann::json why = parse_json(read_file(folder / "f.json")).at("why");
  double sum = 0;
  for (const char* part : {"ideal_ms", "smaller_share_ms", "disturbed_ms", "waiting_ms", "sums_ms",
                           "does_not_shrink_ms"}) {
    sum += why.at(part).get<double>();
  }
  EXPECT_NEAR(sum, why.at("step_ms").get<double>(), 1e-6);
}

TEST(BenchTrain, TellsTheMeanBesideTheMedian) {
  const TemporaryDirectory folder;
  const Outcome outcome = ringlet({"bench", "train", "--model", "mlp", "--synthetic-train", "256",
                                   "--batch-size", "64", "--warm-up", "1", "--steps", "5",
                                   "--threads", "1", "--json", folder / "speed.json"});
  ASSERT_TRUE(succeeds(outcome));
  const json speed = parse_json(read_file(folder / "speed.json"));
  const auto rate = std::llround(speed.at("samples_per_second").get<double>());
  EXPECT_TRUE(
      holds(outcome.out, {train::with_commas(rate) + " samples/s", " ms a step (mean; median ",
                          " 1 thread reaches with nothing but multiply-adds"}));
  const double mean = speed.at("mean_seconds"), fastest = speed.at("fastest_seconds");
  EXPECT_GE(mean, fastest);
  EXPECT_GE(speed.at("median_seconds").get<double>(), fastest);
  EXPECT_NEAR(speed.at("samples_per_second").get<double>() * mean, 64, 1e-6);
}

/// How many images `bench train` made for batches of so many, by --json.
std::int64_t images_of_bench(const Arguments& flags, int batch = 300) {
  const TemporaryDirectory folder;
  const Outcome outcome =
      ringlet(Arguments{"bench", "train", "--model", "mlp", "--batch-size", std::to_string(batch),
                        "--warm-up", "1", "--steps", "1", "--json", folder / "speed.json"} +
              flags);
  EXPECT_TRUE(succeeds(outcome));
  return parse_json(read_file(folder / "speed.json")).at("train_images");
}

TEST(BenchTrain, MakesImagesForWholeBatchesUnlessToldHowMany) {
  EXPECT_EQ(images_of_bench({}), 19800);
  EXPECT_EQ(images_of_bench({"--synthetic-train", "700"}), 700);
  EXPECT_EQ(images_of_bench({}, 20001), 20001);
}

/// The mean of several steps, of which an epoch's last would have fewer samples.
TEST(BenchTrain, MeasuresStepsOfTheBatchThatItTells) {
  for (const int batch : {64, 128}) {
    const TemporaryDirectory folder;
    const int whole = std::min(batch, 100);
    const Outcome outcome = ringlet({"bench", "train", "--model", "mlp", "--synthetic-train", "100",
                                     "--batch-size", std::to_string(batch), "--warm-up", "1",
                                     "--steps", "4", "--json", folder / "speed.json"});
    ASSERT_TRUE(succeeds(outcome));
    EXPECT_TRUE(holds(outcome.out, {"global batch " + std::to_string(whole) + ","}));
    const json speed = parse_json(read_file(folder / "speed.json"));
    EXPECT_EQ(speed.at("batch_size"), whole);
    const double mean = speed.at("mean_seconds");
    EXPECT_NEAR(speed.at("samples_per_second").get<double>() * mean, whole, 1e-6);
  }
}

TEST(BenchTrain, TakesImagesOfAnyShape) {
  const TemporaryDirectory folder;
  ASSERT_TRUE(succeeds(ringlet({"bench", "train", "--model", "resnet20", "--data", "random:3x40x24",
                                "--batch-size", "4", "--synthetic-train", "8", "--warm-up", "1",
                                "--steps", "2", "--json", folder / "speed.json"})));
  const json speed = parse_json(read_file(folder / "speed.json"));
  EXPECT_EQ(speed.at("data"), "random:3x40x24");
  EXPECT_EQ(speed.at("image_shape"), json({3, 40, 24}));
  EXPECT_EQ(speed.at("train_images"), 8);
}

TEST(BenchTrain, TellsOfACudaDeviceBesideItsSpeed) {
  if (survey_cuda().devices.empty()) GTEST_SKIP() << "no GPU";
  const TemporaryDirectory folder;
  const Outcome outcome = ringlet({"bench", "train", "--model", "lenet-d2l", "--synthetic-train",
                                   "256", "--batch-size", "64", "--device", "cuda:0", "--warm-up",
                                   "2", "--steps", "1", "--json", folder / "speed.json"});
  ASSERT_TRUE(succeeds(outcome));
  const json speed = parse_json(read_file(folder / "speed.json"));
  EXPECT_GT(speed.at("first_step_seconds").get<double>(), 0);
  const std::vector<std::string> notes = speed.at("device_notes");
  const auto begins = [&](const char* text) {
    return std::any_of(notes.begin(), notes.end(),
                       [text](const std::string& note) { return note.starts_with(text); });
  };
  EXPECT_TRUE(begins("a graph of "));
  EXPECT_TRUE(begins("conv2d_forward"));
}

TEST(Metrics, AreALineAStepAndALineAnEpoch) {
  const TemporaryDirectory folder;
  ASSERT_TRUE(succeeds(
      ringlet(quick_train({"--epochs", "2", "--replicas", "2", "--metrics", folder / "m.jsonl"}))));
  const auto lines = lines_of(folder / "m.jsonl");
  ASSERT_EQ(lines.size(), 10u);
  for (std::size_t i = 0; i < lines.size(); ++i) {
    const json& line = lines[i];
    const bool is_epoch = i % 5 == 4;
    EXPECT_EQ(line.at("kind"), is_epoch ? "epoch" : "step");
    EXPECT_EQ(line.at("epoch"), i / 5 + 1);
    if (is_epoch) {
      EXPECT_EQ(keys_of(line),
                (std::set<std::string>{"kind", "epoch", "train_loss", "test_loss", "test_accuracy",
                                       "seconds", "samples_per_second", "sync_share",
                                       "data_seconds", "forward_seconds", "backward_seconds",
                                       "sync_seconds", "update_seconds"}));
      EXPECT_GT(line.at("backward_seconds"), 0);
      EXPECT_GE(line.at("test_accuracy").get<double>(), 0);
      EXPECT_LE(line.at("test_accuracy").get<double>(), 1);
    } else {
      EXPECT_EQ(keys_of(line), (std::set<std::string>{"kind", "epoch", "step", "loss", "lr",
                                                      "samples", "grad_norm", "seconds"}));
      EXPECT_GT(line.at("grad_norm"), 0);
      EXPECT_EQ(line.at("step"), i - i / 5 + 1);
      EXPECT_EQ(line.at("samples"), 64);
    }
  }
}

TEST(Metrics, OfAnEpochAreThoseOfItsSteps) {
  const TemporaryDirectory folder;
  ASSERT_TRUE(succeeds(ringlet(quick_train({"--metrics", folder / "m.jsonl"}))));
  const auto lines = lines_of(folder / "m.jsonl");
  ASSERT_EQ(lines.size(), 5u);
  double sum = 0;
  for (std::size_t i = 0; i < 4; ++i) sum += lines[i].at("loss").get<double>();
  EXPECT_NEAR(sum / 4, lines[4].at("train_loss").get<double>(), 1e-6);
}

TEST(Metrics, MayGoToAPipe) {
  const Outcome outcome = ringlet(quick_train({"--metrics", "/dev/stdout"}));
  EXPECT_TRUE(succeeds(outcome));
  EXPECT_TRUE(holds(outcome.out, {R"({"kind":"step","epoch":1,"step":4,)", R"("kind":"epoch")"}));
}

TEST(Schedule, IsThatOfTheWholeRunWhateverTheLastStep) {
  const TemporaryDirectory folder;
  ASSERT_TRUE(succeeds(ringlet(quick_train({"--metrics", folder / "whole"}))));
  ASSERT_TRUE(succeeds(ringlet(quick_train({"--max-steps", "2", "--metrics", folder / "part"}))));
  const auto whole = lines_of(folder / "whole");
  const auto part = lines_of(folder / "part");
  for (std::size_t i = 0; i < 2; ++i) EXPECT_EQ(whole[i].at("lr"), part[i].at("lr"));
}

TEST(Trace, IsAChromeTraceOfEveryRank) {
  const TemporaryDirectory folder;
  const Outcome outcome =
      ringlet(quick_train({"--replicas", "2", "--trace", folder / "trace.json"}));
  ASSERT_TRUE(succeeds(outcome));
  EXPECT_TRUE(holds(outcome.out, {"\nwrote " + (folder / "trace.json").string() +
                                  "; https://ui.perfetto.dev opens it, 'ringlet inspect "}));
  const json trace = parse_json(read_file(folder / "trace.json"));
  std::set<int> ranks;
  std::set<std::string> names;
  for (const json& event : trace.at("traceEvents")) {
    if (event.at("ph") != "X") continue;
    ranks.insert(event.at("pid").get<int>());
    names.insert(event.at("name").get<std::string>());
    EXPECT_GE(event.at("dur").get<double>(), 0);
    EXPECT_GE(event.at("ts").get<double>(), 0);
  }
  EXPECT_EQ(ranks, (std::set<int>{0, 1}));
  const auto some_name_holds = [&](const std::string& part) {
    return std::any_of(names.begin(), names.end(), [&](const std::string& name) {
      return name.find(part) != std::string::npos;
    });
  };
  for (const char* part : {"fc1", "exchange", "update", "data"}) {
    EXPECT_TRUE(some_name_holds(part)) << part;
  }
}

TEST(Strategies, LearnTheSame) {
  std::set<std::string> tables;
  for (const char* sync : {"naive", "ring", "doubling"}) {
    const TemporaryDirectory folder;
    const Outcome outcome = ringlet(quick_train(
        {"--replicas", "2", "--sync", sync, "--metrics", folder / "m", "--check-replicas", "1"}));
    ASSERT_TRUE(succeeds(outcome)) << sync;
    EXPECT_TRUE(holds(outcome.out, {std::string(sync) + " all-reduce"}));
    tables.insert(lines_of(folder / "m")[3].at("loss").dump());
  }
  EXPECT_EQ(tables.size(), 1u) << "two replicas add two numbers: the order cannot matter";
}

}  // namespace
}  // namespace ringlet::testing
