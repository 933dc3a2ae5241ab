// `ringlet compare` as its users see it: exit codes, what it writes, and files that are empty, cut,
// foreign or made to harm.
#include <algorithm>
#include <filesystem>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "base/files/json_text.h"
#include "tests/cli/browser.h"
#include "tests/cli/program.h"
#include "tests/support/files.h"

namespace ringlet::testing {
namespace {

using nlohmann::json;

json row(const std::string& strategy, double median) {
  return {{"engine", "ringlet"},
          {"ranks_as", "threads"},
          {"transport", "local"},
          {"strategy", strategy},
          {"ranks", 2},
          {"machines", 1},
          {"level", "all"},
          {"bytes", 4096},
          {"count", 1024},
          {"type", "f32"},
          {"op", "sum"},
          {"in_place", true},
          {"pinned", true},
          {"iterations", 9},
          {"median_us", median},
          {"min_us", median},
          {"p99_us", median},
          {"low_us", median / 1.01},
          {"high_us", median * 1.01},
          {"rounds", 6},
          {"counts", true},
          {"why_not", "none"},
          {"wrong", 0},
          {"hashes", {"a", "a"}}};
}

json document(double ring, double tree, const std::string& processor = "P") {
  return {{"build", {{"commit", "c"}, {"compiler", "GNU 12"}, {"build_type", "Release"}}},
          {"machine",
           {{"processor", processor}, {"cores", 2}, {"instruction_set", "avx2"}, {"ringlet", "1"}}},
          {"rows", {row("ring", ring), row("tree", tree)}}};
}

class CompareCommand : public ::testing::Test {
 protected:
  std::string path(const std::string& name) const { return folder_ / name; }
  std::string file(const std::string& name, const std::string& text) const {
    write_file(path(name), text);
    return path(name);
  }
  Outcome compare(const std::string& a, const std::string& b, const Arguments& more = {}) const {
    return ringlet(Arguments{"compare", a, b} + more);
  }

  TemporaryDirectory folder_;
  std::string a_ = file("old.json", document(10, 20).dump());
  std::string b_ = file("new.json", document(12, 20).dump());
};

/// Ended with 4 and one line of error, behind what it printed.
::testing::AssertionResult refuses(const Outcome& outcome, const std::string& message) {
  const std::string line = "ringlet: error: " + message + "\n";
  if (outcome.code == 4 && outcome.err == line) return ::testing::AssertionSuccess();
  return ::testing::AssertionFailure() << outcome.code << ": " << outcome.err;
}

TEST_F(CompareCommand, FailsOverALimitOnly) {
  EXPECT_TRUE(succeeds(compare(a_, b_)));
  EXPECT_TRUE(succeeds(compare(a_, a_, {"--fail-over", "1", "--strict"})));
  EXPECT_TRUE(succeeds(compare(b_, a_, {"--fail-over", "1.05"})));
  EXPECT_TRUE(succeeds(compare(a_, b_, {"--fail-over", "1.19"})));
  // hypot(ln 1.01, ln 1.01) is 0.01407: 1.2 lies between 1.183 and 1.217.
  const Outcome outcome = compare(a_, b_, {"--fail-over", "1.05", "--json", path("c.json")});
  EXPECT_TRUE(refuses(outcome, b_ + ": 1 of 2 rows is worse by more than --fail-over 1.05, most of "
                                    "all ring 4K by 1.200 (1.183 to 1.217); the table has all of "
                                    "them"));
  EXPECT_TRUE(
      holds(outcome.out,
            {"ring      4K        10  ±1.0%        12  ±1.0%   1.200  1.183 to 1.217   worse\n",
             "tree      4K        20  ±1.0%        20  ±1.0%   1.000  0.986 to 1.014   equal\n"}));
  EXPECT_EQ(parse_json(read_file(path("c.json")))["rows"][0]["fails"], true);
}

TEST_F(CompareCommand, FailsAScriptWhereNothingCanBeSaidOrResultsAreWrong) {
  json busy = document(10, 20), wrong = document(10, 20);
  for (json& one : busy["rows"]) one["counts"] = false;
  wrong["rows"][1]["wrong"] = 3;
  const std::string b = file("busy.json", busy.dump()), bad = file("wrong.json", wrong.dump());
  EXPECT_TRUE(succeeds(compare(a_, b)));
  EXPECT_TRUE(succeeds(compare(a_, bad)));
  for (const Arguments& flag : {Arguments{"--strict"}, Arguments{"--fail-over", "2"}}) {
    EXPECT_TRUE(refuses(compare(a_, b, flag),
                        a_ + " and " + b +
                            ": nothing can be said, as none of 2 rows counts; measure both again "
                            "when the machine has less to do"));
    EXPECT_TRUE(refuses(compare(a_, bad, flag), bad + ": 1 of 2 rows has wrong results, the first "
                                                      "tree 4K; the table has all that both sides "
                                                      "have"));
    EXPECT_TRUE(succeeds(compare(bad, a_, flag))) << "A's are";
  }
}

TEST_F(CompareCommand, GoesByThePlainRatioWhereThereIsNoInterval) {
  json old = document(12, 20);
  for (json& one : old["rows"]) {
    one.erase("low_us");
    one.erase("high_us");
  }
  const std::string plain = file("plain.json", old.dump());
  EXPECT_TRUE(succeeds(compare(a_, plain, {"--fail-over", "1.2"})));
  EXPECT_TRUE(refuses(compare(a_, plain, {"--fail-over", "1.19"}),
                      plain + ": 1 of 2 rows is worse by more than --fail-over 1.19, most of all "
                              "ring 4K by 1.200; the table has all of them"));
}

TEST_F(CompareCommand, RefusesUnlikeFilesWhenAskedTo) {
  const std::string other = file("other.json", document(10, 20, "Q").dump());
  const std::string line =
      "unlike machines: old.json was measured on P, 2 cores, avx2, other.json on Q, 2 cores, "
      "avx2\n";
  const Outcome told = compare(a_, other);
  EXPECT_TRUE(succeeds(told));
  EXPECT_TRUE(holds(told.out, {line}));
  const Outcome strict = compare(a_, other, {"--strict", "--out", path("page.html")});
  EXPECT_TRUE(refuses(
      strict,
      a_ + " and " + other + " have unlike machines; measure both alike, or leave --strict out"));
  EXPECT_EQ(strict.out, line);
  EXPECT_FALSE(std::filesystem::exists(path("page.html")));
}

TEST_F(CompareCommand, ReadsWhatTheBenchmarksAndRunsWrite) {
  const std::string rows = path("rows.json"), speed = path("speed.json"), run = path("run");
  ASSERT_TRUE(succeeds(ringlet({"bench", "all-reduce", "--begin", "4K", "--end", "4K",
                                "--iterations", "2", "--strategies", "ring", "--json", rows})));
  ASSERT_TRUE(succeeds(ringlet({"bench", "train", "--model", "mlp", "--synthetic-train", "64",
                                "--steps", "3", "--warm-up", "1", "--json", speed})));
  ASSERT_TRUE(succeeds(ringlet(quick_train({"--epochs", "3", "--out", run}))));
  for (const std::string& one : {rows, speed, run}) {
    const Outcome outcome = compare(one, one, {"--strict", "--fail-over", "1"});
    const bool busy = outcome.out.find("Nothing can be said: none of ") != std::string::npos;
    EXPECT_EQ(outcome.code, busy ? 4 : 0) << one << ": " << outcome.err;
    EXPECT_TRUE(holds(outcome.out, {busy ? " counts\n0 better, " : " is worse\n0 better, "}))
        << one;
  }
  EXPECT_TRUE(holds(compare(speed, speed).out, {"\nsamples/s ", "\nforward (ms) ", " 1.000  "}));
  const Outcome of_run = compare(run, run + "/", {"--out", path("run.html")});
  EXPECT_TRUE(holds(of_run.out, {"\nseconds an epoch ", "\nlast test accuracy ",
                                 "one run each: what another seed would give is not known"}));
  EXPECT_TRUE(holds(read_file(path("run.html")), {"id=\"speed\"", "id=\"test-accuracy\""}));
  const auto build = parse_json(ringlet({"--version", "--json"}).out);
  const std::size_t facts = build["commit"].is_null() ? 2 : 3;  // a build without git knows none
  for (const std::string& one : {rows, speed, run + "/run.json"}) {
    EXPECT_EQ(parse_json(read_file(one))["build"].size(), facts)
        << "commit, compiler, type of " << one;
  }
  EXPECT_TRUE(fails_with(1, compare(rows, speed), {"compare two of a kind"}));
}

TEST_F(CompareCommand, TakesTwoAndNoLimitBelowOne) {
  EXPECT_TRUE(fails_with(2, ringlet({"compare", a_}), {"B"}));
  for (const char* limit : {"0.9", "nan", "inf", "-1", "x"}) {
    EXPECT_TRUE(fails_with(2, compare(a_, b_, {"--fail-over", limit}), {"--fail-over"})) << limit;
  }
  EXPECT_TRUE(fails_with(2, compare(a_, b_, {"--json", a_, "--force"}), {a_}));
}

TEST_F(CompareCommand, RefusesFilesThatAreEmptyForeignOrNotThere) {
  for (const char* text : {"", "\n", "hello", "{}", "[]", "[1]", "null", "{\"rows\":[]}",
                           "\x89PNG\r\n\x1a\n", "{\"rows\":{\"a\":[]}}"}) {
    EXPECT_TRUE(fails_with(1, compare(a_, file("x.json", text)), {"x.json"})) << text;
  }
  EXPECT_TRUE(fails_with(1, compare(path("none.json"), b_), {"none.json"}));
  EXPECT_TRUE(fails_with(1, compare(path(""), b_), {"metrics.jsonl"}));
}

TEST_F(CompareCommand, RefusesAFileThatIsCutAnywhere) {
  const std::string text = document(10, 20).dump(1);
  constexpr std::size_t kCuts = 40;
  for (std::size_t i = 1; i < kCuts; ++i) {
    const std::size_t length = i * (text.size() - 1) / kCuts;
    EXPECT_TRUE(fails_with(1, compare(a_, file("x.json", text.substr(0, length))),
                           {"x.json: ", "is not valid JSON"}))
        << length;
  }
}

TEST_F(CompareCommand, RefusesAFileThatNestsDeeplyAndSoDoOthers) {
  const std::string nested = std::string(60000, '[') + std::string(60000, ']');
  const std::string deep = file("d.json", R"({"rows":[{"a":)" + nested + "}]}");
  const std::string good = file("a.json", document(100, 100).dump());
  const Arguments measure{"bench", "all-reduce", "--no-measure", "--with"};
  for (const Arguments& command :
       {Arguments{"compare", good, deep}, measure + Arguments{deep},
        Arguments{"simulate", "--from", deep}, Arguments{"simulate", "--measured", deep}}) {
    EXPECT_TRUE(fails_with(1, ringlet(command), {"(nested deeper than 100)"}));
  }
}

/// Infinity and NaN, as Python writes them, beyond what a double holds, and what is no number.
TEST_F(CompareCommand, NamesRowAndFieldOfOddNumbers) {
  const json good = document(10, 20);
  for (const auto& [field, value] : good["rows"][1].items()) {
    if (!value.is_number()) continue;
    for (const char* odd : {"NaN", "-Infinity", "1e999", "\"x\"", "null", "-1"}) {
      if (field == "wrong" && std::string(odd) == "null") continue;  // results were not compared
      json document = good;
      document["rows"][1][field] = "ODD";
      std::string text = document.dump();
      text.replace(text.find("\"ODD\""), 5, odd);
      EXPECT_TRUE(
          fails_with(1, compare(a_, file("x.json", text)), {"x.json: row 2: '" + field + "'"}))
          << field << " " << odd;
    }
  }
}

TEST_F(CompareCommand, WithstandsNumbersOfAnySize) {
  for (const auto& [ring, tree] : {std::pair(1e-300, 1e300), {1e300, 1e-300}, {5e-324, 1.7e308}}) {
    json odd = document(ring, tree);
    for (json& one : odd["rows"]) one["low_us"] = one["high_us"] = one["median_us"];
    const Outcome outcome = compare(a_, file("x.json", odd.dump()),
                                    {"--json", path("c.json"), "--out", path("c.html"), "--force"});
    EXPECT_TRUE(succeeds(outcome));
    for (const std::string& text : {outcome.out, read_file(path("c.json"))}) {
      EXPECT_EQ(text.find("inf"), std::string::npos) << text;
      EXPECT_EQ(text.find("nan"), std::string::npos) << text;
    }
    EXPECT_FALSE(json_or_discarded(read_file(path("c.json"))).is_discarded());
  }
}

TEST_F(CompareCommand, ShowsMarkupInAnyTextAsText) {
  const std::string markup = "x\"'><img src=x onerror=alert(1)>\x1b[31m";
  const json good = document(10, 20);
  int texts = 0;
  const json flat = good.flatten();
  for (const auto& [pointer, value] : flat.items()) {
    if (!value.is_string()) continue;
    ++texts;
    json changed = good;
    changed[json::json_pointer(pointer)] = markup;
    const std::string x = file("x.json", changed.dump());
    const Outcome outcome =
        compare(x, a_, {"--out", path("c.html"), "--json", path("c.json"), "--force"});
    EXPECT_TRUE(succeeds(outcome)) << pointer;
    const std::string page = read_file(path("c.html"));
    EXPECT_EQ(page.find("<img src=x"), std::string::npos) << pointer;
    for (const std::string& text : {outcome.out, page, read_file(path("c.json"))}) {
      EXPECT_EQ(text.find('\x1b'), std::string::npos) << pointer;
    }
  }
  EXPECT_GE(texts, 18);
}

TEST_F(CompareCommand, WritesAPageForAnyWidth) {
  const std::string page = path("page.html");
  ASSERT_TRUE(succeeds(compare(a_, b_, {"--out", page})));
  EXPECT_EQ(read_file(page).find("src=\"http"), std::string::npos);
  const std::string probe =
      std::string(kProbeNames) +
      "document.documentElement.dataset.wide = document.documentElement.scrollWidth > innerWidth;";
  for (const int width : {1200, 420}) {
    const Opened opened = open_in_browser(page, probe, width);
    if (!opened.could) GTEST_SKIP() << opened.why;
    EXPECT_TRUE(holds(opened.dom, {"data-wide=\"false\"", "data-names=\"\""})) << width;
    EXPECT_EQ(opened.dom.find("data-errors"), std::string::npos);
  }
}

}  // namespace
}  // namespace ringlet::testing
