// `ringlet replay` from real traces: of a benchmark on threads, of processes merged, of a training.
#include <gtest/gtest.h>

#include <filesystem>
#include <map>
#include <nlohmann/json.hpp>
#include <set>
#include <string>
#include <vector>

#include "base/files/json_text.h"
#include "tests/cli/browser.h"
#include "tests/cli/program.h"
#include "tests/support/files.h"

namespace ringlet::testing {
namespace {

using nlohmann::json;

json json_of(const std::string& file) { return parse_json(read_file(file)); }

Arguments traced_bench(const Arguments& more) {
  return Arguments{"bench", "all-reduce",   "--begin", "4K",           "--end",
                   "4K",    "--iterations", "2",       "--strategies", "ring"} +
         more;
}

/// Each begin and end of an arrow lies in a slice of its thread, in whose order slices nest; and
/// each has its counterpart.
void check_by_the_rules(const json& trace, std::size_t arrows) {
  std::map<std::string, json> begins, ends;
  for (const json& event : trace.at("traceEvents")) {
    if (event.at("ph") != "s" && event.at("ph") != "f") continue;
    auto& side = event.at("ph") == "s" ? begins : ends;
    EXPECT_TRUE(side.emplace(event.at("id"), event).second) << event;
  }
  EXPECT_EQ(begins.size(), arrows);
  EXPECT_EQ(ends.size(), arrows);
  for (const auto& [id, end] : ends) {
    ASSERT_TRUE(begins.contains(id)) << end;
    EXPECT_LT(begins.at(id).at("ts"), end.at("ts"));
    EXPECT_EQ(end.at("bp"), "e");
  }
  for (const auto* side : {&begins, &ends}) {
    for (const auto& [id, event] : *side) {
      bool inside = false;
      for (const json& span : trace.at("traceEvents")) {
        if (span.at("ph") != "X" || span.at("cat") != "exchange") continue;
        if (span.at("pid") != event.at("pid") || span.at("tid") != event.at("tid")) continue;
        const double begin = span.at("ts"), at = event.at("ts");
        inside = inside || (begin <= at && at <= begin + span.at("dur").get<double>());
      }
      EXPECT_TRUE(inside) << event;
    }
  }
}

TEST(Replay, ShowsABenchmarkOnThreads) {
  const TemporaryDirectory folder;
  const std::string trace = folder / "t.json", page = folder / "p.html", out = folder / "r.json";
  ASSERT_TRUE(succeeds(ringlet(traced_bench({"--ranks", "3", "--trace", trace}))));
  check_by_the_rules(json_of(trace), 3 * 3 * 4);
  const Outcome outcome = ringlet({"replay", trace, "--out", page, "--json", out, "--still",
                                   folder / "s.svg", "--steps", "1,4"});
  ASSERT_TRUE(succeeds(outcome));
  EXPECT_TRUE(holds(outcome.out, {"wrote " + page}));
  const json calls = json_of(out).at("calls");
  ASSERT_EQ(calls.size(), 3U);
  std::set<std::int64_t> numbers;
  for (const json& call : calls) {
    EXPECT_EQ(call.at("name"), "ring 4K");
    EXPECT_EQ(call.at("steps"), 4);
    EXPECT_EQ(call.at("final"), (json(3, json(3, json{1, 1, 1}))));
    numbers.insert(call.at("call").get<std::int64_t>());
  }
  EXPECT_EQ(numbers.size(), 3U);
  EXPECT_TRUE(read_file(folder / "s.svg").starts_with("<svg "));
  const std::string number = std::to_string(*numbers.begin());
  EXPECT_TRUE(succeeds(ringlet({"replay", trace, "--call", number, "--json", out, "--force"})));
  EXPECT_EQ(json_of(out).at("calls").size(), 1U);
  EXPECT_TRUE(succeeds(
      ringlet({"replay", trace, "--call", "ring 4K:" + number, "--json", out, "--force"})));
  EXPECT_EQ(json_of(out).at("calls").size(), 1U);
  EXPECT_TRUE(fails_with(2, ringlet({"replay", trace, "--call", "tree", "--out", page, "--force"}),
                         {"--call tree", "it has 'ring 4K' (" + number}));
  EXPECT_TRUE(fails_with(
      2, ringlet({"replay", trace, "--still", folder / "s.svg", "--force", "--steps", "010"}),
      {"--steps 10: "}));
}

/// Plays each call, by both clocks, and clicks on everything; nothing may lie beyond the page.
constexpr const char* kProbe = R"js(
  {
    const stage = document.getElementById('stage'), said = new Set();
    const press = (key) => document.dispatchEvent(new KeyboardEvent('keydown', {key, bubbles: true}));
    Object.defineProperty(KeyboardEvent.prototype, 'target', {get: () => document.body});
    for (const clock of ['step', 'real']) {
      press('Home');
      for (let i = 0; i < 6; ++i) {
        press('ArrowRight');
        said.add(document.getElementById('says').textContent);
        const area = stage.getBoundingClientRect();
        for (let y = area.top; y < area.bottom; y += 17) {
          stage.dispatchEvent(new MouseEvent('click', {clientX: area.left + area.width / 2, clientY: y, bubbles: true}));
          said.add(document.getElementById('detail').textContent);
        }
      }
      press('End');
      press('t');
    }
    const root = document.documentElement;
    root.dataset.said = [...said].join('|');
    root.dataset.clock = document.getElementById('clock').textContent;
    root.dataset.beyond = String(root.scrollWidth > innerWidth);
    root.dataset.painted = String(stage.toDataURL().length > 2000);
  }
)js";

TEST(Replay, PlaysInABrowser) {
  const TemporaryDirectory folder;
  const std::string trace = folder / "t.json", page = folder / "p.html";
  ASSERT_TRUE(succeeds(ringlet(traced_bench({"--ranks", "4", "--trace", trace}))));
  ASSERT_TRUE(succeeds(ringlet({"replay", trace, "--out", page})));
  EXPECT_EQ(read_file(page).find("https:"), std::string::npos) << "it needs no network";
  EXPECT_EQ(read_file(page).find("src="), std::string::npos);
  for (const int width : {1280, 500}) {
    const Opened opened = open_in_browser(page, kProbe, width);
    if (!opened.could) GTEST_SKIP() << opened.why;
    EXPECT_EQ(opened.dom.find("data-errors"), std::string::npos) << opened.dom.substr(0, 2000);
    EXPECT_TRUE(
        holds(opened.dom, {"data-beyond=\"false\"", "data-painted=\"true\"",
                           "Step 2 of 6: 4 messages; what arrives is added",
                           "Done: every cell holds the numbers of all ranks, each once.",
                           "holds the numbers of all ranks", "data-clock=\"step 6 of 6\""}));
  }
}

TEST(Replay, ShowsProcessesThatWereMerged) {
  const TemporaryDirectory folder;
  const std::string trace = folder / "t.json", all = folder / "all.json", out = folder / "r.json";
  ASSERT_TRUE(succeeds(ringlet(traced_bench({"--processes", "--ranks", "2", "--trace", trace}))));
  const Outcome alone = ringlet({"replay", trace, "--json", out});
  EXPECT_TRUE(fails_with(1, alone, {trace, "lacks rank 1 of 2", "ringlet trace merge"}));
  EXPECT_FALSE(std::filesystem::exists(out));
  const Outcome some = ringlet({"trace", "merge", trace, "--out", folder / "some.json"});
  ASSERT_TRUE(succeeds(some));
  EXPECT_NE(some.out.find("of the run's 2 processes, 1 is not in it: name the files of all\n"),
            std::string::npos)
      << some.out;
  const Outcome both = ringlet({"trace", "merge", trace, folder / "t.p1.json", "--out", all});
  ASSERT_TRUE(succeeds(both));
  EXPECT_EQ(both.out.find("not in it"), std::string::npos) << both.out;
  ASSERT_TRUE(succeeds(ringlet({"replay", all, "--json", out})));
  const json calls = json_of(out).at("calls");
  EXPECT_EQ(calls.size(), 3U);
  for (const json& call : calls) {
    EXPECT_EQ(call.at("final"), (json(2, json(2, json{1, 1}))));
  }
}

TEST(Replay, PutsATrainingsBucketsBesideBackward) {
  const TemporaryDirectory folder;
  const std::string trace = folder / "t.json", page = folder / "p.html";
  ASSERT_TRUE(succeeds(ringlet(
      quick_train({"--replicas", "2", "--sync", "ring", "--bucket-kb", "16", "--trace", trace}))));
  ASSERT_TRUE(succeeds(ringlet({"replay", trace, "--out", page})));
  EXPECT_TRUE(holds(read_file(page), {"Buckets beside backward", "% hidden", "data-call=\"1\""}));
}

TEST(Replay, TakesNoPipeAndNoFolder) {
  const TemporaryDirectory folder;
  const std::string page = folder / "p.html", place = folder.path();
  EXPECT_TRUE(fails_with(1, ringlet({"replay", "/dev/stdin", "--out", page}),
                         {"/dev/stdin", "is not a regular file"}));
  EXPECT_TRUE(fails_with(1, ringlet({"replay", place, "--out", page}), {place, "is a folder"}));
  EXPECT_FALSE(std::filesystem::exists(folder / "p.html"));
}

}  // namespace
}  // namespace ringlet::testing
