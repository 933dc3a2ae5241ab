// `ringlet bench all-reduce`: its table, the files that it writes, and what it refuses.
#include <algorithm>
#include <filesystem>
#include <nlohmann/json.hpp>
#include <set>
#include <string>

#include "comm/all_reduce.h"
#include "tests/cli/program.h"
#include "tests/support/files.h"

namespace ringlet::testing {
namespace {

namespace fs = std::filesystem;

/// Small sizes and few calls. `more` are flags to add.
Arguments quick_bench(const Arguments& more = {}) {
  return Arguments{"bench", "all-reduce", "-b", "4K", "-e", "16K",
                   "-f",    "4",          "-n", "3",  "-w", "1"} +
         more;
}

std::set<std::string> local_strategies() {
  std::set<std::string> names;
  for (const auto name : comm::all_reduce_strategies()) {
    if (!comm::needs_engine(name)) names.emplace(name);
  }
  return names;
}

std::set<std::string> strategies_in(const nlohmann::json& rows) {
  std::set<std::string> names;
  for (const auto& row : rows) names.insert(row.at("strategy").get<std::string>());
  return names;
}

/// The file's JSON, or null and a failure.
nlohmann::json json_of(const fs::path& file) {
  auto json = nlohmann::json::parse(read_file(file), nullptr, false);
  EXPECT_FALSE(json.is_discarded()) << file;
  return json;
}

TEST(AllReduceBench, PrintsATableOfEveryStrategyThatCanRunAndNamesTheOthers) {
  const Outcome outcome = ringlet(quick_bench({"--ranks", "2,3"}));
  ASSERT_TRUE(succeeds(outcome));
  EXPECT_TRUE(holds(outcome.out, {"2 ranks as threads on cpu:0, local transport, in place; ",
                                  "3 ranks as threads", "#wrong", "busbw", "\nfastest: ", "\nmodel",
                                  "nccl, library (without --transport nccl)"}));
  for (const std::string& strategy : local_strategies()) {
    EXPECT_TRUE(holds(outcome.out, {"  " + strategy + " "}));
  }
}

TEST(AllReduceBench, WritesItsFiguresModelsAndMachineAsJson) {
  const TemporaryDirectory folder;
  const std::string file = folder / "bench.json";
  ASSERT_TRUE(succeeds(ringlet(quick_bench({"--json", file}))));
  const nlohmann::json json = json_of(file);
  EXPECT_EQ(strategies_in(json.at("rows")), local_strategies());
  EXPECT_EQ(json.at("rows").size(), 2 * local_strategies().size());
  const nlohmann::json& row = json.at("rows").at(0);
  EXPECT_EQ(row.at("engine"), "ringlet");
  EXPECT_EQ(row.at("ranks_as"), "threads");
  EXPECT_EQ(row.at("transport"), "local");
  EXPECT_EQ(row.at("bytes"), 4096);
  EXPECT_EQ(row.at("count"), 1024);
  EXPECT_EQ(row.at("type"), "f32");
  EXPECT_EQ(row.at("op"), "sum");
  EXPECT_EQ(row.at("in_place"), true);
  EXPECT_EQ(row.at("iterations"), 3);
  EXPECT_EQ(row.at("wrong"), 0);
  EXPECT_EQ(row.at("hashes").size(), 2u);
  for (const char* field : {"median_us", "min_us", "p99_us", "algbw_gbs", "busbw_gbs"}) {
    EXPECT_GT(row.at(field).get<double>(), 0) << field;
  }
  const nlohmann::json& machine = json.at("machine");
  EXPECT_GE(machine.at("cores").get<int>(), 1);
  EXPECT_GT(machine.at("copy").at("one_thread").at("memcpy_gbs").get<double>(), 0);
  EXPECT_NE(machine.at("processor"), "");
  EXPECT_EQ(strategies_in(json.at("models")), local_strategies());
  EXPECT_GE(json.at("fastest").size(), 1u);
}

TEST(AllReduceBench, WritesALineOfCsvForEachRow) {
  const TemporaryDirectory folder;
  const std::string file = folder / "bench.csv";
  ASSERT_TRUE(succeeds(ringlet(quick_bench({"--csv", file, "--strategies", "ring,naive"}))));
  const std::string csv = read_file(file);
  EXPECT_EQ(std::count(csv.begin(), csv.end(), '\n'), 5);
  EXPECT_TRUE(csv.starts_with("engine,ranks_as,transport,strategy,"));
  EXPECT_TRUE(holds(csv, {"\nringlet,threads,local,ring,2,4096,1024,f32,sum,true,3,"}));
}

TEST(AllReduceBench, WritesATimelineThatCanBeInspected) {
  const TemporaryDirectory folder;
  const std::string file = folder / "trace.json";
  ASSERT_TRUE(succeeds(ringlet(quick_bench({"--trace", file, "--strategies", "ring"}))));
  const Outcome inspected = ringlet({"inspect", "--json", file});
  ASSERT_TRUE(succeeds(inspected));
  EXPECT_TRUE(holds(inspected.out, {"ring 4K", "ring 16K", "exchange"}));
  // Three calls of two sizes on two ranks, each of two exchanges.
  const nlohmann::json trace = json_of(file);
  int collectives = 0, exchanges = 0, names = 0;
  for (const auto& event : trace.at("traceEvents")) {
    collectives += event.value("cat", "") == "collective" ? 1 : 0;
    exchanges += event.value("cat", "") == "exchange" ? 1 : 0;
    names += event.at("name") == "process_name" ? 1 : 0;
  }
  EXPECT_EQ(collectives, 3 * 2 * 2);
  EXPECT_GE(exchanges, 3 * 2 * 2 * 2);
  EXPECT_EQ(names, 4);  // of two ranks' two streams, however many calls
}

TEST(AllReduceBench, GoesOutOfPlaceAndUnchecked) {
  const TemporaryDirectory folder;
  const std::string file = folder / "bench.json";
  const Outcome outcome = ringlet(
      quick_bench({"--json", file, "--strategies", "ring", "--out-of-place", "--no-check"}));
  ASSERT_TRUE(succeeds(outcome));
  EXPECT_TRUE(holds(outcome.out, {"out of place", " n/a "}));
  EXPECT_EQ(json_of(file).at("rows").at(0).at("in_place"), false);
  EXPECT_TRUE(json_of(file).at("rows").at(0).at("wrong").is_null());
}

TEST(AllReduceBench, ReducesOtherTypesByOtherOperations) {
  const Outcome outcome = ringlet(quick_bench({"-d", "bf16", "-o", "mean", "--ranks", "3"}));
  ASSERT_TRUE(succeeds(outcome));
  EXPECT_TRUE(holds(outcome.out, {"      4096      2048 bf16  mean  ring "}));
}

TEST(AllReduceBench, TakesStepsInPlaceOfAFactor) {
  const Outcome outcome = ringlet({"bench", "all-reduce", "-b", "1K", "-e", "3K", "-i", "1K", "-n",
                                   "2", "--strategies", "naive"});
  ASSERT_TRUE(succeeds(outcome));
  EXPECT_TRUE(holds(outcome.out, {"      1024 ", "      2048 ", "      3072 "}));
}

TEST(AllReduceBench, RunsItsRanksAsProcessesAndCollectsWhatTheyMeasured) {
  const TemporaryDirectory folder;
  const std::string file = folder / "bench.json";
  const Outcome outcome =
      ringlet(quick_bench({"--processes", "--ranks", "2,3", "--json", file, "--trace", file}));
  EXPECT_TRUE(fails_with(2, outcome, {"--trace with --processes takes one number of --ranks"}));
  const Outcome measured = ringlet(
      quick_bench({"--processes", "--ranks", "2,3", "--json", file, "--strategies", "ring"}));
  if (measured.err.find("Gloo") != std::string::npos) GTEST_SKIP() << measured.err;
  ASSERT_TRUE(succeeds(measured));
  EXPECT_TRUE(holds(measured.out, {"2 ranks as processes", "gloo transport", "3 ranks as"}));
  const nlohmann::json rows = json_of(file).at("rows");
  ASSERT_EQ(rows.size(), 4u);
  EXPECT_EQ(rows[3].at("ranks"), 3);
  EXPECT_EQ(rows[3].at("ranks_as"), "processes");
  EXPECT_EQ(rows[3].at("wrong"), 0);
}

TEST(AllReduceBench, RefusesWhatCannotBeInOneLine) {
  const struct {
    Arguments flags;
    std::vector<std::string> parts;
  } lines[] = {
      {{"-b", "4X"}, {"--begin", "'4X'", "4K or 64M"}},
      {{"-b", "0"}, {"--begin", "'0'"}},
      {{"-b", "8K", "-e", "4K"}, {"--begin 8K is larger than --end 4K"}},
      {{"-b", "2"}, {"--begin 2 holds no element of 4 bytes"}},
      {{"-f", "1"}, {"--factor", "'1'", "from 2"}},
      {{"-f", "2", "-i", "4K"}, {"--step", "--factor", "cannot be combined"}},
      {{"--ranks", "1"}, {"--ranks", "'1'", "from 2"}},
      {{"--ranks", "2,x"}, {"--ranks", "'x'"}},
      {{"--strategies", "rign"}, {"--strategies", "did you mean ring?"}},
      {{"--strategies", "nccl"}, {"--transport nccl is for GPUs"}},
      {{"--strategies", "nccl", "--transport", "local"}, {"--strategies nccl needs --transport"}},
      {{"--strategies", "one-shot", "--processes"},
       {"--strategies one-shot needs ranks that share"}},
      {{"-d", "bf16", "-o", "mean", "--ranks", "32"},
       {"bf16", "up to 256", "the mean of 32 ranks"}},
      {{"-d", "f64"}, {"--type", "'f64'"}},
      {{"-o", "prod"}, {"--op", "'prod'"}},
      {{"-n", "0"}, {"--iterations", "'0'"}},
      {{"--devices", "cpu,cpu,cpu"}, {"--devices names 3 devices for 2 ranks", "--ranks 3"}},
  };
  for (const auto& line : lines) {
    const Outcome outcome = ringlet(Arguments{"bench", "all-reduce"} + line.flags);
    EXPECT_TRUE(fails_with(2, outcome, {}));
    for (const std::string& part : line.parts) EXPECT_TRUE(holds(outcome.err, {part}));
    EXPECT_EQ(outcome.out, "");
  }
}

TEST(AllReduceBench, FindsOutThatAFileCannotBeWrittenBeforeItMeasures) {
  const TemporaryDirectory folder;
  write_file(folder / "file", "");
  const Outcome outcome =
      ringlet(quick_bench({"--json", (folder / "file").string() + "/bench.json"}));
  EXPECT_TRUE(fails_with(1, outcome, {(folder / "file").string()}));
  EXPECT_EQ(outcome.out, "");
}

}  // namespace
}  // namespace ringlet::testing
