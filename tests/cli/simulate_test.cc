// `ringlet simulate`: its table and files, and where its costs come from.
#include <fmt/format.h>
#include <fmt/ranges.h>

#include <filesystem>
#include <map>
#include <nlohmann/json.hpp>
#include <regex>
#include <string>
#include <utility>
#include <vector>

#include "base/files/json_text.h"
#include "comm/all_reduce/strategies.h"
#include "tests/cli/browser.h"
#include "tests/cli/program.h"
#include "tests/support/files.h"
#include "train/sync/tuning.h"
#include "train/telemetry/trace_reader.h"

namespace ringlet::testing {
namespace {

namespace fs = std::filesystem;

Outcome simulate(const Arguments& flags, const ProgramOptions& options = {}) {
  return ringlet(Arguments{"simulate"} + flags, options);
}

nlohmann::json rows_of(const fs::path& file) {
  return json_or_discarded(read_file(file)).at("rows");
}

TEST(Simulate, PrintsATableAndWritesRows) {
  const TemporaryDirectory folder;
  const std::string file = folder / "rows.json";
  const Outcome outcome = simulate({"--ranks", "8,64", "--bytes", "504K", "--alpha", "5us",
                                    "--beta", "50G", "--strategies", "ring,nccl", "--json", file});
  ASSERT_TRUE(succeeds(outcome));
  EXPECT_TRUE(
      holds(outcome.out, {"8 ranks on one machine, 504K of f32 on each: latency 5 us, 50G bytes a "
                          "second, adding free\n",
                          "nccl is a library's own", "\nfastest: ring, 88.06 us\n"}));
  const nlohmann::json rows = rows_of(file);
  ASSERT_EQ(rows.size(), 4u);
  EXPECT_EQ(rows[0].at("bytes"), 516096);
  EXPECT_EQ(rows[2].at("ranks"), 64);
  EXPECT_NEAR(rows[0].at("seconds").get<double>(), 14 * (5e-6 + 516096 / (8 * 50e9)), 1e-9);
  EXPECT_TRUE(rows[1].contains("why_not"));
  EXPECT_TRUE(fails_with(2, simulate({"--alpha", "5us", "--beta", "50G", "--json", file}),
                         {file, "--force"}));
}

TEST(Simulate, TakesMachinesWithoutRanks) {
  const TemporaryDirectory folder;
  const std::string file = folder / "rows.json";
  ASSERT_TRUE(succeeds(
      simulate({"--machines", "4x2", "--alpha", "5us", "--beta", "50G", "--alpha-inside", "1us",
                "--beta-inside", "200G", "--strategies", "two-level", "--json", file})));
  const nlohmann::json rows = rows_of(file);
  ASSERT_EQ(rows.size(), 1u);
  EXPECT_EQ(rows[0].at("ranks"), 8);
  EXPECT_EQ(rows[0].at("machines"), 4);
}

TEST(Simulate, OfASlowRankAlsoSlowsItsPartOfATrainingStep) {
  const TemporaryDirectory folder;
  const auto compute = [&](const char* name, const Arguments& more) {
    const std::string file = folder / name;
    EXPECT_TRUE(
        succeeds(simulate(Arguments{"--ranks", "2", "--alpha", "5us", "--beta", "50G",
                                    "--train-step", "lenet", "--compute", "10ms", "--json", file} +
                          more)));
    return json_or_discarded(read_file(file)).at("steps").at(0).at("compute_seconds").get<double>();
  };
  EXPECT_NEAR(compute("slow.json", {"--slow", "1:3x"}), 3 * compute("all.json", {}), 1e-12);
  const std::string help = ringlet({"simulate", "--help-all"}).out;
  EXPECT_TRUE(holds(std::regex_replace(help, std::regex("\\s+"), " "),
                    {"forward and backward of --train-step"}));
}

TEST(Simulate, RefusesFlagsOfATrainingStepThatNobodyAskedFor) {
  for (const char* flag : {"--bucket-kb", "--batch-size"}) {
    EXPECT_TRUE(fails_with(2, simulate({"--alpha", "5us", "--beta", "50G", flag, "32"}),
                           {std::string(flag) + " needs --train-step beside it"}));
  }
}

TEST(Simulate, TakesItsCostsFromMeasurementsAndStandsBesideThem) {
  const TemporaryDirectory folder;
  const std::string file = folder / "bench.json", out = folder / "rows.json";
  ASSERT_TRUE(succeeds(ringlet({"bench", "all-reduce", "-b", "4K", "-e", "1M", "-f", "16", "-n",
                                "3", "--strategies", "ring,tree", "--json", file})));
  const Outcome outcome = simulate({"--from", file, "--measured", file, "--json", out});
  ASSERT_TRUE(succeeds(outcome));
  EXPECT_TRUE(holds(outcome.out, {"2 ranks on one machine, 4K of f32", "measured", "off by",
                                  "each strategy's costs as fitted to " + file, ", fit "}));
  int beside = 0;
  for (const auto& row : rows_of(out)) beside += row.contains("measured_seconds") ? 1 : 0;
  EXPECT_EQ(beside, 2 * 3);
}

// Written by hand: what `ringlet tune` keeps on a busy machine may be nothing, or one size.
TEST(Simulate, TakesItsCostsFromThisMachinesTable) {
  const TemporaryDirectory cache;
  const ProgramOptions options{.environment = {{"XDG_CACHE_HOME", cache.path().string()}}};
  EXPECT_TRUE(fails_with(2, simulate({}, options),
                         {"nothing says what messages cost", "--alpha", "--from", "ringlet tune"}));
  const fs::path table = cache / "ringlet" / train::tuning_file().filename();
  fs::create_directories(table.parent_path());
  const comm::StrategyTable ranges{{2, 0, "ring"}};
  train::write_tuning(table, DeviceKind::cpu, "local", ranges, {{2, "ring", 4096, 5e-6}});
  EXPECT_TRUE(fails_with(2, simulate({"--ranks", "4"}, options),
                         {table, "no costs of any strategy on one machine",
                          "two sizes or more that count", "--alpha", "ringlet tune"}));
  train::write_tuning(table, DeviceKind::cpu, "local", ranges,
                      {{2, "ring", 4096, 5e-6}, {2, "ring", 16384, 8e-6}});
  const Outcome outcome = simulate({"--ranks", "4"}, options);
  ASSERT_TRUE(succeeds(outcome));
  EXPECT_TRUE(holds(outcome.out, {"costs as fitted to " + table.string(), "\nfastest: ring"}));
}

using StepWords = std::vector<std::string>;

/// Of each strategy the first call in `file`: what each rank does, without times.
std::map<std::string, std::map<std::int64_t, StepWords>> steps_in(const fs::path& file) {
  std::map<std::int64_t, std::map<std::int64_t, StepWords>> by_call;  // then by rank
  std::map<std::string, std::int64_t> first;
  train::read_trace(file, [&](const train::TraceSpan& span) {
    if (span.category == "collective") {
      first.emplace(span.name, span.call);
      by_call[span.call][span.rank].push_back(
          fmt::format("{} {} {} {}", span.bytes, span.type, span.reduce, span.ranks));
    } else if (span.category == "exchange") {
      by_call[span.call][span.rank].push_back(fmt::format(
          "{} to {} from {} out {} in {}, {} bytes {} [{}, {}) of {} into {}", span.name, span.peer,
          span.from, span.out_at, span.in_at, span.in_bytes, span.op, span.begin, span.end,
          fmt::join(span.of, " "), fmt::join(span.into, " ")));
    }
  });
  std::map<std::string, std::map<std::int64_t, StepWords>> steps;
  for (const auto& [name, call] : first) steps[name] = by_call[call];
  return steps;
}

TEST(Simulate, WritesATraceThatSaysWhatARealOneSays) {
  const TemporaryDirectory folder;
  const std::string played = folder / "played.json", real = folder / "real.json";
  ASSERT_TRUE(succeeds(simulate(
      {"--ranks", "3", "--bytes", "4K", "--alpha", "5us", "--beta", "50G", "--trace", played})));
  ASSERT_TRUE(succeeds(ringlet({"bench", "all-reduce", "--ranks", "3", "-b", "4K", "-e", "4K", "-n",
                                "1", "-w", "1", "--trace", real})));
  const auto of_played = steps_in(played), of_real = steps_in(real);
  EXPECT_GE(of_played.size(), 8u);
  for (const auto& [name, steps] : of_played) {
    ASSERT_EQ(of_real.count(name), 1u) << name;
    EXPECT_EQ(steps, of_real.at(name)) << name;
  }
  EXPECT_TRUE(succeeds(ringlet({"inspect", played})));
}

TEST(Simulate, PlaysATrainingStep) {
  const TemporaryDirectory folder;
  const std::string file = folder / "rows.json";
  const Outcome outcome = simulate({"--machines",   "2x1",
                                    "--alpha",      "200us",
                                    "--beta",       "25M",
                                    "--strategies", "ring,two-shot",
                                    "--train-step", "lenet-d2l",
                                    "--compute",    "12ms",
                                    "--bucket-kb",  "64,1000",
                                    "--json",       file,
                                    "--trace",      folder / "trace.json",
                                    "--report",     folder / "page.html"});
  ASSERT_TRUE(succeeds(outcome));
  EXPECT_TRUE(holds(outcome.out, {"a step of lenet-d2l, 256 samples on 2 ranks, buckets of 64 KiB",
                                  "buckets of 1000 KiB", "hidden", "efficiency"}));
  const nlohmann::json json = json_or_discarded(read_file(file));
  ASSERT_EQ(json.at("rows").size(), 2u);
  const nlohmann::json& steps = json.at("steps");
  ASSERT_EQ(steps.size(), 4u);
  EXPECT_TRUE(steps[1].contains("why_not"));
  EXPECT_GT(steps[0].at("hidden").get<double>(), steps[2].at("hidden").get<double>());
  EXPECT_EQ(steps[2].at("buckets"), 1);
  const std::string page = read_file(folder / "page.html");
  EXPECT_TRUE(holds(page, {"<h2>A training step</h2>", "of 64 KiB", "two-shot needs"}));
  const std::string replay = folder / "replay.html";
  EXPECT_TRUE(succeeds(ringlet({"replay", folder / "trace.json", "--out", replay})));
  EXPECT_TRUE(holds(read_file(replay), {"Buckets beside backward", "ring bucket 0 of 64 KiB",
                                        "<h3>Backward 2, ", "ring bucket 0 of 1000 KiB"}));
}

/// A page with machines, one without and one of fitted costs.
class SimulationReport : public ::testing::Test {
 protected:
  std::string page(const Arguments& flags) const {
    std::string file = folder_ / "page.html";
    EXPECT_TRUE(succeeds(simulate(flags + Arguments{"--report", file, "--force"})));
    return file;
  }
  /// Skips where there is no browser.
  static std::string opened(const std::string& page, const std::string& probe, int width = 1200) {
    const Opened opened = open_in_browser(page, probe + kProbeNames, width);
    if (!opened.could) return "";
    EXPECT_EQ(opened.dom.find("data-errors"), std::string::npos) << opened.dom.substr(0, 400);
    EXPECT_TRUE(holds(opened.dom, {"data-names=\"\""})) << opened.dom.substr(0, 400);
    return opened.dom;
  }

  const Arguments costs_{"--alpha", "5us", "--beta", "50G", "--adding", "100G"};
  TemporaryDirectory folder_;
};

TEST_F(SimulationReport, IsWholeWithoutItsScript) {
  const std::string html = read_file(page(costs_ + Arguments{"--ranks", "8"}));
  EXPECT_TRUE(
      holds(html, {"<h1 id=\"answer\">8 ranks on one machine, 504K: two-shot takes 32.58 us",
                   "id=\"over-bytes\"", "id=\"over-ranks\"", "data-name=\"ring\"",
                   "<td>ring</td><td>8</td><td>1</td><td>504K</td><td>92.58 us</td>",
                   "nccl is a library&#39;s own", "congestion"}));
  EXPECT_EQ(html.find(" src="), std::string::npos) << "it loads something";
}

/// Moves the slider behind `label` to `value`, which is a logarithm for costs and bytes.
std::string moved(const std::string& label, const std::string& value) {
  return "{ const label = [...document.querySelectorAll('.sliders label')].find((one) => "
         "one.textContent.startsWith('" +
         label +
         "')); const input = label.querySelector('input'); "
         "input.value = " +
         value + "; input.dispatchEvent(new Event('input')); }\n";
}

TEST_F(SimulationReport, ComputesWhatTheProgramComputes) {
  const std::string dom =
      opened(page(costs_ + Arguments{"--ranks", "16", "--bytes", "1M"}),
             moved("latency", "Math.log10(2e-5)") + moved("bandwidth", "9") +
                 moved("adding", "10") + moved("ranks", "14") + moved("bytes", "20"));
  if (dom.empty()) GTEST_SKIP() << "there is no browser";
  const comm::Strategies known;
  for (const comm::Strategy& strategy : known.all()) {
    const std::string row = fmt::format("<tr data-name=\"{}\" data-seconds=\"", strategy.name);
    const auto at = dom.find(row);
    EXPECT_EQ(at == std::string::npos, comm::needs_engine(strategy.needs)) << strategy.name;
    if (at == std::string::npos) continue;
    const double expected = predicted_seconds(strategy.path_cost, 16, 1 << 20, {2e-5, 1e-9, 1e-10});
    EXPECT_NEAR(std::stod(dom.substr(at + row.size())), expected, 1e-9 * expected) << strategy.name;
  }
  EXPECT_TRUE(holds(dom, {"16 ranks on one machine, 1M: ", "class=\"dot old"}));
}

TEST_F(SimulationReport, ObeysKeysAndClicksAlsoOnATelephone) {
  const std::string probe =
      "document.querySelector('.sliders label:nth-of-type(4) input').dispatchEvent(new "
      "KeyboardEvent('keydown', {key: 'ArrowRight'}));"
      "const area = document.querySelector('#over-bytes svg').getBoundingClientRect();"
      "document.querySelector('#over-bytes svg').dispatchEvent(new MouseEvent('click', {clientX: "
      "area.left + area.width * 0.8, bubbles: true}));";
  const std::string dom = opened(page(costs_ + Arguments{"--ranks", "8"}), probe, 500);
  if (dom.empty()) GTEST_SKIP() << "there is no browser";
  EXPECT_TRUE(holds(dom, {"9 ranks on one machine, 1G: ", "Fastest: "}));
}

TEST_F(SimulationReport, ShowsBytesFarBeyondTheUsual) {
  for (const auto& [bytes, text] : {std::pair{"4G", "4G: "}, {"4", "4 bytes: "}}) {
    const std::string probe =
        "for (const dot of document.querySelectorAll('#over-bytes .dot')) {"
        "  const x = Number(dot.getAttribute('cx'));"
        "  if (x < 55.9 || x > 354.1) throw new Error('a dot beside the plot'); }";
    const std::string dom =
        opened(page(costs_ + Arguments{"--ranks", "2", "--bytes", bytes}), probe);
    if (dom.empty()) GTEST_SKIP() << "there is no browser";
    EXPECT_TRUE(holds(dom, {text}));
  }
}

TEST_F(SimulationReport, ShowsMachinesAndFittedCosts) {
  const std::string machines = opened(page(costs_ + Arguments{"--machines", "8x8", "--alpha-inside",
                                                              "1us", "--beta-inside", "200G"}),
                                      moved("latency inside", "-7"));
  if (machines.empty()) GTEST_SKIP() << "there is no browser";
  EXPECT_TRUE(holds(machines, {"64 ranks on 8 machines of 8, 504K: two-level takes"}));
  const std::string rows = folder_ / "bench.json";
  ASSERT_TRUE(succeeds(ringlet({"bench", "all-reduce", "-b", "4K", "-e", "64K", "-f", "16", "-n",
                                "3", "--strategies", "ring,tree", "--json", rows})));
  const std::string fitted =
      opened(page({"--from", rows, "--measured", rows}), moved("bandwidth", "1"));
  EXPECT_TRUE(holds(fitted, {"\u00d7 10 of the fitted", "class=\"ring c"}));
}

}  // namespace
}  // namespace ringlet::testing
