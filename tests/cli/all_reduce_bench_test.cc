// `ringlet bench all-reduce`: its table, the files that it writes, and what it refuses.
#include <fmt/format.h>

#include <algorithm>
#include <filesystem>
#include <nlohmann/json.hpp>
#include <regex>
#include <set>
#include <string>

#include "base/files/json_text.h"
#include "base/instruction_set.h"
#include "comm/all_reduce/strategies.h"
#include "tests/cli/browser.h"
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
  const comm::Strategies strategies;
  for (const auto name : strategies.names()) {
    if (!comm::needs_engine(strategies.needs_of(name))) names.emplace(name);
  }
  return names;
}

/// Without `auto`, which only picks one.
std::set<std::string> fixed_strategies() {
  std::set<std::string> names = local_strategies();
  names.erase("auto");
  return names;
}

std::set<std::string> strategies_in(const nlohmann::json& rows) {
  std::set<std::string> names;
  for (const auto& row : rows) names.insert(row.at("strategy").get<std::string>());
  return names;
}

/// The file's JSON, or null and a failure.
nlohmann::json json_of(const fs::path& file) {
  auto json = json_or_discarded(read_file(file));
  EXPECT_FALSE(json.is_discarded()) << file;
  return json;
}

TEST(AllReduceBench, PrintsATableOfEveryStrategyThatCanRunAndNamesTheOthers) {
  const Outcome outcome = ringlet(quick_bench({"--ranks", "2,3"}));
  ASSERT_TRUE(succeeds(outcome));
  const std::string missing =
      "\ncannot run here: library (neither NCCL, Gloo nor MPI), gloo (no Gloo), mpi (no MPI), nccl "
      "(no NCCL)\n";
  EXPECT_TRUE(holds(outcome.out,
                    {"2 ranks as threads on cpu:0, local transport, in place", "3 ranks as threads",
                     "#wrong", "busbw", "\nfastest: ", "\nmodel", missing}));
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
  EXPECT_EQ(json.at("busy"), "");
  EXPECT_EQ(json.at("counting_rows"), json.at("rows").size());
  EXPECT_EQ(row.at("counts"), true);
  EXPECT_EQ(row.at("low_us"), 0);  // of three calls
  for (const char* field :
       {"median_us", "min_us", "p99_us", "mean_us", "p90_us", "algbw_gbs", "busbw_gbs"}) {
    EXPECT_GT(row.at(field).get<double>(), 0) << field;
  }
  const bool tells = kX86 && widest_instruction_set() != InstructionSet::portable;
  ASSERT_EQ(row.contains("shared_core"), tells);
  if (tells) {
    EXPECT_GE(row.at("shared_core"), 0);
    EXPECT_LE(row.at("shared_core"), 1);
  }
  EXPECT_TRUE(json.at("shared_cores").is_string());
  const nlohmann::json& machine = json.at("machine");
  EXPECT_GE(machine.at("cores").get<int>(), 1);
  EXPECT_GT(machine.at("copy").at("one_thread").at("memcpy_gbs").get<double>(), 0);
  EXPECT_NE(machine.at("processor"), "");
  EXPECT_EQ(strategies_in(json.at("models")), fixed_strategies());
  EXPECT_GE(json.at("fastest").size(), 1u);
  EXPECT_EQ(strategies_in(json.at("fastest")).count("auto"), 0u);
  ASSERT_EQ(json.at("regrets").size(), 1u);
  EXPECT_EQ(json.at("regrets").at(0).at("strategy"), "auto");
  EXPECT_GE(json.at("regrets").at(0).at("worst"), json.at("regrets").at(0).at("median"));
}

TEST(AllReduceBench, SaysWhatAutoCostsAndNeverThatItIsTheFastest) {
  const TemporaryDirectory folder;
  const std::string page = folder / "page.html";
  const Outcome both = ringlet(quick_bench({"--strategies", "ring,auto", "--report", page}));
  ASSERT_TRUE(succeeds(both));
  EXPECT_TRUE(holds(both.out, {"\nfastest: 4K to 16K ring\nauto takes ", "\nring  "}));
  EXPECT_TRUE(holds(read_file(page), {"auto takes ", "<tr><td>ring</td><td>4K to 16K</td>"}));
  EXPECT_FALSE(std::regex_search(both.out, std::regex("\nauto  .* -\n"))) << "it has a model";
  const Outcome alone = ringlet(quick_bench({"--strategies", "auto", "--report", page, "--force"}));
  ASSERT_TRUE(succeeds(alone));
  EXPECT_EQ(alone.out.find("fastest"), std::string::npos) << alone.out;
  EXPECT_EQ(read_file(page).find("<h3>The models</h3>"), std::string::npos);
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

TEST(AllReduceBench, WritesItsCsvToStandardOutputAndItsWordsElsewhere) {
  for (const Arguments& more : {Arguments{}, Arguments{"--processes"}}) {
    const Outcome outcome = ringlet(quick_bench({"--csv", "-", "--strategies", "ring"}) + more);
    ASSERT_EQ(outcome.code, 0);
    EXPECT_TRUE(outcome.out.starts_with("engine,ranks_as,transport,strategy,"));
    EXPECT_EQ(std::count(outcome.out.begin(), outcome.out.end(), '\n'), 3) << outcome.out;
    EXPECT_TRUE(holds(outcome.err, {"2 rows: about ", " transport, in place", "#wrong"}));
  }
}

TEST(AllReduceBench, WritesTheTimeOfEachCallAndRank) {
  const TemporaryDirectory folder;
  for (const Arguments& more : {Arguments{}, Arguments{"--processes"}}) {
    const std::string raw = folder / "raw.csv", json = folder / "a.json";
    ASSERT_TRUE(succeeds(ringlet(quick_bench({"--raw", raw, "--json", json, "--strategies",
                                              "ring,naive", "--ranks", "2,3", "--force"}) +
                                 more)));
    const std::string lines = read_file(raw);
    EXPECT_TRUE(lines.starts_with("collective,ranks,machines,level,type,op,in_place,bytes,"));
    const auto calls = 3 * 2 * 2 * (2 + 3);  // of each size and strategy, on each rank
    EXPECT_EQ(std::count(lines.begin(), lines.end(), '\n'), 1 + calls);
    EXPECT_TRUE(holds(lines, {"\nall-reduce,3,1,all,f32,sum,true,16384,naive,2,0,2,"}));
    const nlohmann::json document = json_of(json);
    EXPECT_EQ(document.at("late"), "");  // of few calls
    const nlohmann::json& rank = document.at("rows").at(0).at("by_rank").at(1);
    EXPECT_GT(rank.at("median_us").get<double>(), 0);
    EXPECT_GT(rank.at("mean_us").get<double>(), 0);
    EXPECT_LE(rank.at("last").get<double>(), 1);
  }
}

TEST(AllReduceBench, WritesATimelineThatCanBeInspected) {
  const TemporaryDirectory folder;
  const std::string file = folder / "trace.json";
  const Outcome measured = ringlet(quick_bench({"--trace", file, "--strategies", "ring"}));
  ASSERT_TRUE(succeeds(measured));
  EXPECT_TRUE(holds(measured.out, {"\nwrote " + file + "; https://ui.perfetto.dev opens it"}));
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

TEST(AllReduceBench, MeasuresUncheckedWhatNoNumbersAreExactFor) {
  const Arguments mean{"--strategies", "ring", "--type", "bf16", "--op", "mean", "--ranks", "17"};
  EXPECT_TRUE(fails_with(2, ringlet(quick_bench(mean)), {"too few to check the mean of 17 ranks"}));
  EXPECT_TRUE(succeeds(ringlet(quick_bench(mean + Arguments{"--no-check"}))));
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
  ASSERT_TRUE(succeeds(measured));
  EXPECT_TRUE(holds(measured.out, {"2 ranks as processes", "shm transport", "3 ranks as"}));
  const nlohmann::json rows = json_of(file).at("rows");
  ASSERT_EQ(rows.size(), 4u);
  EXPECT_EQ(rows[3].at("ranks"), 3);
  EXPECT_EQ(rows[3].at("ranks_as"), "processes");
  EXPECT_EQ(rows[3].at("wrong"), 0);
}

TEST(AllReduceBench, MeasuresGloosOwnSumsBesideTheOthers) {
  const TemporaryDirectory folder;
  const std::string file = folder / "bench.json";
  const Outcome measured = ringlet(quick_bench(
      {"--processes", "--ranks", "3", "--strategies", "library,ring,gloo", "--json", file}));
  if (measured.err.find("Gloo, which this build has not") != std::string::npos) {
    GTEST_SKIP() << measured.err;
  }
  ASSERT_TRUE(succeeds(measured));
  EXPECT_TRUE(holds(measured.out, {"gloo transport"}));
  const nlohmann::json rows = json_of(file).at("rows");
  EXPECT_EQ(strategies_in(rows), (std::set<std::string>{"ring", "gloo", "library"}));
  for (const auto& row : rows) {
    EXPECT_EQ(row.at("wrong"), 0);
    EXPECT_EQ(row.at("transport"), "gloo");
    EXPECT_EQ(row.at("pinned"), false);
  }
}

TEST(AllReduceBench, SaysWhereItsProcessesCannotLeaveTheirFigures) {
  const Outcome outcome =
      ringlet(quick_bench({"--processes"}), {.environment = {{"TMPDIR", "/no/such"}}});
  EXPECT_TRUE(fails_with(1, outcome,
                         {"/no/such is no folder for temporary files: ", "; set TMPDIR to one"}));
  EXPECT_EQ(outcome.out, "");
}

TEST(AllReduceBench, SaysBeforehandHowLongItMayTake) {
  const Outcome judged = ringlet({"bench", "all-reduce", "-b", "4K", "-e", "4K", "-n", "6", "-w",
                                  "1", "--strategies", "ring,naive", "--budget", "500ms"});
  ASSERT_TRUE(succeeds(judged));
  EXPECT_TRUE(
      judged.out.starts_with("2 rows: about 1 s, and up to 0.5 s more to measure again what "
                             "other work disturbs (--budget)\n"))
      << judged.out;
  const Outcome few =
      ringlet(quick_bench({"--strategies", "ring", "--processes", "--ranks", "2,3"}));
  ASSERT_TRUE(succeeds(few));
  EXPECT_TRUE(
      few.out.starts_with("4 rows: about 1 s, of so few calls that nothing tells whether "
                          "other work disturbs them (--iterations 6 does)\n"))
      << few.out;
}

TEST(AllReduceBench, TakesTheNameOfTheTimeOutThatMessagesGive) {
  for (const char* flag : {"--timeout", "--comm-timeout"}) {
    EXPECT_TRUE(succeeds(ringlet(quick_bench({flag, "30", "--strategies", "ring"})))) << flag;
    EXPECT_TRUE(fails_with(2, ringlet(quick_bench({flag, "0"})), {"'0'"})) << flag;
  }
}

TEST(AllReduceBench, SaysWithoutMemoryThatSmallerSizesHelp) {
  constexpr long kMost = 1500L << 20;
  if (ringlet({"--version"}, {.address_space_limit = kMost}).code != 0) {
    GTEST_SKIP() << "sanitizers reserve more addresses";
  }
  const Outcome outcome =
      ringlet({"bench", "all-reduce", "-b", "1G", "-e", "1G", "--strategies", "ring", "-n", "1"},
              {.address_space_limit = kMost});
  EXPECT_TRUE(fails_with(1, outcome, {"; give a smaller --end, or fewer --ranks"}));
  EXPECT_EQ(outcome.err.find("batch"), std::string::npos) << outcome.err;
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
      {{"--ranks", "2,3,2"}, {"--ranks: 2 is there twice; name each number once"}},
      {{"--ranks", "2,x"}, {"--ranks", "'x'"}},
      {{"--strategies", "rign"}, {"--strategies", "did you mean ring?"}},
      {{"--strategies", "nccl"}, {"error: --strategies nccl is for GPUs"}},
      {{"--transport", "nccl"}, {"error: --transport nccl is for GPUs"}},
      {{"--strategies", "nccl", "--transport", "local"}, {"--strategies nccl needs --transport"}},
      {{"--strategies", "gloo"}, {"--strategies gloo needs --transport gloo with one replica"}},
      {{"--strategies", "gloo", "--processes", "--transport", "shm"},
       {"--strategies gloo needs --transport gloo with one replica"}},
      {{"--strategies", "one-shot", "--processes", "--transport", "gloo"},
       {"--strategies one-shot needs ranks that share"}},
      {{"-d", "bf16", "-o", "mean", "--ranks", "32"},
       {"bf16", "up to 256", "the mean of 32 ranks"}},
      {{"-d", "f64"}, {"--type", "'f64'"}},
      {{"-o", "prod"}, {"--op", "'prod'"}},
      {{"-n", "0"}, {"--iterations", "'0'"}},
      {{"--budget", "0"}, {"--budget", "'0' is no time such as 60s or 500ms, above 0"}},
      {{"--budget", "0s"}, {"--budget", "'0s' is no time such as 60s"}},
      {{"-b", "4", "-e", "4G", "-i", "4"}, {"--step 4 makes more than 10000 sizes up to --end 4G"}},
      {{"--devices", "cpu,cpu,cpu"}, {"--devices names 3 devices for 2 ranks", "--ranks 3"}},
      {{"--devices", "cpu:0"},
       {"--devices names one device for 2 ranks; name one for each, or give --device cpu:0"}},
  };
  for (const auto& line : lines) {
    const Outcome outcome = ringlet(Arguments{"bench", "all-reduce"} + line.flags);
    EXPECT_TRUE(fails_with(2, outcome, {}));
    for (const std::string& part : line.parts) EXPECT_TRUE(holds(outcome.err, {part}));
    EXPECT_EQ(outcome.out, "");
  }
}

/// A file of another engine's rows, as bench/peers writes them.
std::string peers_rows() {
  std::string lines;
  for (const std::int64_t bytes : {4096, 16384}) {
    for (const char* strategy : {"ring", "linear <b>"}) {
      lines += nlohmann::json{{"engine", "openmpi"},
                              {"ranks_as", "processes"},
                              {"transport", "vader"},
                              {"strategy", strategy},
                              {"ranks", 2},
                              {"bytes", bytes},
                              {"count", bytes / 4},
                              {"type", "f32"},
                              {"op", "sum"},
                              {"in_place", true},
                              {"iterations", 10},
                              {"median_us", 1e6},
                              {"min_us", 1e6},
                              {"p99_us", 1e6},
                              {"wrong", 0}}
                   .dump() +
               "\n";
    }
  }
  return lines;
}

bool has_id(const std::string& html, const std::string& id) {
  return html.find(" id=\"" + id + "\"") != std::string::npos;
}

class AllReduceReport : public ::testing::Test {
 protected:
  std::string page() const { return folder_ / "page.html"; }
  std::string peers() const { return folder_ / "peers.json"; }
  /// The page of two and three ranks, with another engine's rows.
  std::string make() {
    write_file(peers(), peers_rows());
    outcome_ = ringlet(quick_bench({"--ranks", "2,3", "--report", page(), "--with", peers()}));
    EXPECT_TRUE(succeeds(outcome_));
    return read_file(page());
  }
  static std::vector<std::string> plots() {
    std::vector<std::string> ids{"time-1", "busbw-1", "time-2", "busbw-2", "time-1-2", "busbw-1-2"};
    for (const std::string& strategy : fixed_strategies()) {
      ids.push_back("model-1-" + strategy);
      ids.push_back("model-2-" + strategy);
    }
    return ids;
  }

  TemporaryDirectory folder_;
  Outcome outcome_;
};

TEST_F(AllReduceReport, HoldsEveryPlotAndTableAndAsksNothingOfTheNetwork) {
  const std::string html = make();
  for (const std::string& id : plots()) EXPECT_TRUE(has_id(html, id)) << id;
  for (const char* id : {"fastest-1", "crossings-1", "models-1", "fastest-2", "figures"}) {
    EXPECT_TRUE(has_id(html, id)) << id;
  }
  EXPECT_TRUE(
      holds(html, {"<h2>2 ranks, f32 sum in place</h2>", "at most a tenth longer than the fastest",
                   ">openmpi<title>", "Machine copies", "openmpi linear &lt;b&gt;", ">16K<",
                   "streaming stores"}));
  EXPECT_EQ(html.find("<b>"), std::string::npos);
  EXPECT_EQ(html.find("nothing was recorded"), std::string::npos);
  EXPECT_EQ(html.find("src="), std::string::npos);
  EXPECT_EQ(html.find("url("), std::string::npos);
  EXPECT_TRUE(
      holds(outcome_.out, {"2 ranks, f32 sum in place, by --with", "all of 2 ranks", "wrote "}));
}

TEST_F(AllReduceReport, BeginsWithTheAnswerAndFoldsTheRows) {
  const std::string html = make();
  for (const char* ranks : {"2", "3"}) {
    EXPECT_TRUE(std::regex_search(html, std::regex("<h1[^>]*>Here, " + std::string(ranks) +
                                                   " ranks: [^<]*[a-z-]+ (at|from|up)")));
  }
  EXPECT_LT(html.find("<h1"), html.find("<h2"));
  const std::size_t rows = html.find("id=\"figures\"");
  const std::size_t fold = html.rfind("<details>", rows);
  ASSERT_NE(fold, html.npos);
  EXPECT_GT(html.find("</details>", fold), rows);
}

TEST_F(AllReduceReport, NamesEachModelsLatencyAndBandwidthAboveItsPlot) {
  const std::string html = make();
  for (const std::string& strategy : local_strategies()) {
    const std::regex title(
        fmt::format("id=\"model-1-{0}\"><figcaption>{0}: [0-9.e+-]+ µs(, [0-9.e+-]+ GB/s)? "
                    "<small>through two points",
                    strategy));
    if (has_id(html, "model-1-" + strategy)) {
      EXPECT_TRUE(std::regex_search(html, title)) << strategy;
    }
  }
  EXPECT_TRUE(has_id(html, "model-1-ring"));
  EXPECT_NE(html.find("class=\"band c"), html.npos);
}

// Leaves each plot's width, what a read-out says, and whether the page overflows.
constexpr const char* kProbe = R"js(
  for (const figure of document.querySelectorAll('figure.plot')) {
    const svg = figure.querySelector('svg'), area = svg.getBoundingClientRect();
    figure.dataset.probe = Math.round(area.width);
    svg.dispatchEvent(new PointerEvent('pointermove',
        {clientX: area.left + area.width * 0.13, clientY: area.top + 40, bubbles: true}));
    figure.dataset.readout = document.getElementById('readout').textContent;
  }
  const root = document.documentElement;
  root.dataset.overflow = root.scrollWidth > root.clientWidth ? 'yes' : 'no';
)js";

TEST_F(AllReduceReport, WorksInABrowserWideAndNarrow) {
  make();
  for (const int width : {1280, 500}) {
    const Opened opened = open_in_browser(page(), std::string(kProbe) + kProbeNames, width);
    if (!opened.could) GTEST_SKIP() << opened.why;
    EXPECT_EQ(opened.dom.find("data-errors"), std::string::npos) << opened.dom.substr(0, 300);
    EXPECT_NE(opened.dom.find("data-overflow=\"no\""), std::string::npos) << width;
    EXPECT_NE(opened.dom.find("data-names=\"\""), std::string::npos) << opened.dom.substr(0, 300);
    for (const std::string& id : plots()) {
      std::smatch probe;
      const std::regex pattern("id=\"" + id + "\"[^>]* data-probe=\"([0-9]+)\"");
      ASSERT_TRUE(std::regex_search(opened.dom, probe, pattern)) << id;
      EXPECT_GT(std::stoi(probe[1]), 280) << id << " at " << width;
    }
    // At the plot's left edge the least size is the nearest, however far apart the others are.
    EXPECT_TRUE(std::regex_search(
        opened.dom, std::regex("id=\"time-1\"[^>]* data-readout=\"bytes on each rank 4096")));
  }
}

TEST_F(AllReduceReport, ShowsFilesWithoutMeasuring) {
  write_file(peers(), peers_rows());
  const Outcome outcome =
      ringlet({"bench", "all-reduce", "--no-measure", "--with", peers(), "--report", page()});
  ASSERT_TRUE(succeeds(outcome));
  EXPECT_TRUE(holds(read_file(page()), {"openmpi of f32 sum", "does not say on which machine"}));
  EXPECT_TRUE(holds(read_file(page()), {"Quickest: ring, 4K, 2 ranks"}));
  std::string odd = peers_rows();
  odd.replace(odd.find("4096"), 4, "4100");
  write_file(peers(), odd.substr(0, odd.find('\n')));
  ASSERT_TRUE(succeeds(ringlet(
      {"bench", "all-reduce", "--no-measure", "--with", peers(), "--report", page(), "--force"})));
  EXPECT_TRUE(holds(read_file(page()), {"Quickest: ring, 4100 bytes, 2 ranks"}));
  EXPECT_TRUE(fails_with(2, ringlet({"bench", "all-reduce", "--no-measure"}), {"without --with"}));
  write_file(peers(), "{\"rows\":[{}]}");
  EXPECT_TRUE(fails_with(1, ringlet(quick_bench({"--with", peers()})),
                         {peers(), "row 1: 'engine' is missing", "--json"}));
}

/// A file of two sizes of ring and tree, measured on the processor.
std::string rows_of(const std::string& processor, const std::string& started) {
  nlohmann::json rows = nlohmann::json::array();
  const std::string lines = peers_rows();
  for (std::size_t begin = 0; begin < lines.size(); begin = lines.find('\n', begin) + 1) {
    rows.push_back(json_or_discarded(lines.substr(begin, lines.find('\n', begin) - begin)));
  }
  const nlohmann::json machine{{"processor", processor}, {"cores", 2}, {"started", started}};
  return nlohmann::json{{"machine", machine}, {"rows", rows}}.dump();
}

TEST_F(AllReduceReport, SaysOfWhichMachineRowsAreAndComparesEachByItself) {
  const std::string a = folder_ / "a.json", b = folder_ / "b.json", c = folder_ / "c.json";
  write_file(a, rows_of("An abacus", "2026-11-01"));
  write_file(b, rows_of("A slide rule", "2026-11-02"));
  write_file(c, rows_of("An abacus", "2026-11-03"));
  const Arguments show{"bench", "all-reduce", "--no-measure", "--report", page(), "--force"};
  const Outcome unlike = ringlet(show + Arguments{"--with", a, "--with", b});
  ASSERT_TRUE(succeeds(unlike));
  const std::string abacus = "2 ranks, f32 sum in place, on An abacus, 2 cores";
  const std::string rule = "2 ranks, f32 sum in place, on A slide rule, 2 cores";
  EXPECT_TRUE(holds(unlike.out, {"rows of " + a + ": An abacus, 2 cores, 2026-11-01\n",
                                 "rows of " + b + ": A slide rule, 2 cores, 2026-11-02\n",
                                 "the machines are unlike", "all of " + abacus, "all of " + rule}));
  EXPECT_TRUE(holds(read_file(page()),
                    {"The rows are of unlike machines", "<h2>" + abacus, "<h2>" + rule,
                     ": An abacus, 2 cores, 2026-11-01.", ": A slide rule, 2 cores, 2026-11-02.",
                     ">On An abacus, 2 cores, 2 ranks: "}));

  const Outcome alike = ringlet(show + Arguments{"--with", a, "--with", c});
  ASSERT_TRUE(succeeds(alike));
  EXPECT_EQ(alike.out.find("unlike"), alike.out.npos) << alike.out;
  EXPECT_TRUE(holds(read_file(page()), {"sum in place on An abacus, 2 cores.", "2026-11-03."}));

  const Outcome measured = ringlet(quick_bench({"--strategies", "ring", "--with", a}));
  ASSERT_TRUE(succeeds(measured));
  EXPECT_TRUE(holds(measured.out, {"the machines are unlike", "all of " + abacus}));
  EXPECT_EQ(measured.out.find("all of 2 ranks, f32 sum in place\n"), measured.out.npos);
}

TEST_F(AllReduceReport, EndsWithOneWhereRowsAreWrong) {
  std::string rows = peers_rows();
  rows.replace(rows.rfind("\"wrong\":0"), 9, "\"wrong\":7");
  write_file(peers(), rows);
  const Outcome outcome =
      ringlet({"bench", "all-reduce", "--no-measure", "--with", peers(), "--report", page()});
  EXPECT_EQ(outcome.code, 1);
  EXPECT_TRUE(holds(outcome.err, {"1 of 4 rows have wrong results", "7 wrong elements"}));
  EXPECT_TRUE(holds(read_file(page()), {"1 of 4 rows have wrong results"}));
}

/// Rows of a machine that was busy, and its cores too: those of "linear <b>" do not count.
std::string busy_rows() {
  std::string lines, rows = peers_rows();
  for (std::size_t begin = 0; begin < rows.size();) {
    const std::size_t end = rows.find('\n', begin);
    auto row = parse_json(rows.substr(begin, end - begin));
    row["shared_core"] = 0.83;
    if (row.at("strategy") != "ring") {
      row.update({{"counts", false},
                  {"why_not", "its rounds place the median only between 4 and 9 us"},
                  {"min_us", 2e6}});
    }
    lines += row.dump() + "\n";
    begin = end + 1;
  }
  return lines;
}

TEST_F(AllReduceReport, SaysFirstOfAllThatRowsDoNotCount) {
  write_file(peers(), busy_rows());
  const Outcome outcome =
      ringlet({"bench", "all-reduce", "--no-measure", "--with", peers(), "--report", page()});
  ASSERT_TRUE(succeeds(outcome));
  EXPECT_TRUE(
      holds(outcome.out, {"the machine was busy: 2 of 4 rows do not count\n",
                          "  does not count: its rounds place the median only between 4 and 9 us\n",
                          "\nfastest: 4K to 16K ring\n"}));
  EXPECT_EQ(outcome.out.find("\nlinear"), std::string::npos) << "it has a model";
  const std::string html = read_file(page());
  const std::size_t warning = html.find("The machine was busy: 2 of 4 rows do not count.");
  ASSERT_NE(warning, html.npos);
  EXPECT_LT(warning, html.find("<h1"));
  EXPECT_TRUE(holds(
      html, {" hollow\"><circle",
             "<td>no: its rounds place the median only between 4 and 9 us</td>", "<td>yes</td>"}));
}

TEST_F(AllReduceReport, SaysThatTheCoresWereShared) {
  write_file(peers(), busy_rows());
  const Outcome outcome =
      ringlet({"bench", "all-reduce", "--no-measure", "--with", peers(), "--report", page()});
  ASSERT_TRUE(succeeds(outcome));
  EXPECT_TRUE(
      holds(outcome.out, {"do not count\nthe ranks' cores were shared for 83 % of the time (with "
                          "what ran on their other hyper-threads): short calls take up to twice as "
                          "long\n"}));
  EXPECT_TRUE(holds(read_file(page()),
                    {"<p class=\"warning\">The ranks", " cores were shared for 83 % of the time"}));
}

TEST_F(AllReduceReport, HasAnExitCodeForRowsThatDoNotCountWhereItIsStrict) {
  write_file(peers(), busy_rows());
  const Arguments shown{"bench", "all-reduce", "--no-measure", "--with", peers()};
  EXPECT_EQ(ringlet(shown).code, 0);
  EXPECT_EQ(ringlet(shown + Arguments{"--strict"}).code, 4);
  write_file(peers(), peers_rows());
  EXPECT_EQ(ringlet(shown + Arguments{"--strict"}).code, 0);
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
