// `ringlet bench all-gather`, reduce-scatter, broadcast, reduce, all-to-all and send-recv: as
// all-reduce's, but for what sizes, counts and flags mean.
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "base/files/json_text.h"
#include "tests/cli/program.h"
#include "tests/support/files.h"

namespace ringlet::testing {
namespace {

const std::vector<std::string>& others() {
  static const std::vector<std::string> names{"all-gather", "reduce-scatter", "broadcast",
                                              "reduce",     "all-to-all",     "send-recv"};
  return names;
}

/// Two small sizes and few calls.
Arguments quick_bench(const std::string& collective, const Arguments& more = {}) {
  return Arguments{"bench", collective, "-b", "4K", "-e", "16K", "-f", "4", "-n", "3", "-w", "1"} +
         more;
}

TEST(CollectivesBench, PrintsATableOfEachAsThreadsAndProcesses) {
  for (const std::string& name : others()) {
    for (const bool processes : {false, true}) {
      Arguments more{"--ranks", "3"};
      if (processes) more.push_back("--processes");
      const Outcome outcome = ringlet(quick_bench(name, more));
      ASSERT_TRUE(succeeds(outcome)) << name;
      EXPECT_TRUE(holds(outcome.out, {processes ? "3 ranks as processes" : "3 ranks as threads",
                                      "#wrong", "  default ", "\nmodel"}));
      EXPECT_EQ(outcome.out.find("fastest"), std::string::npos) << "of one";
    }
  }
}

TEST(CollectivesBench, WritesWhatItIsAsJsonCsvAndPage) {
  const TemporaryDirectory folder;
  const std::string json = folder / "a.json", csv = folder / "a.csv", page = folder / "a.html";
  ASSERT_TRUE(succeeds(ringlet(quick_bench(
      "reduce", {"--root", "1", "-o", "max", "--json", json, "--csv", csv, "--report", page}))));
  const auto document = json_or_discarded(read_file(json));
  const nlohmann::json& row = document.at("rows").at(0);
  EXPECT_EQ(row.at("collective"), "reduce");
  EXPECT_EQ(row.at("root"), 1);
  EXPECT_EQ(row.at("op"), "max");
  EXPECT_EQ(row.at("strategy"), "default");
  EXPECT_EQ(row.at("busbw_gbs"), row.at("algbw_gbs"));
  EXPECT_EQ(document.at("models").at(0).at("collective"), "reduce");
  EXPECT_TRUE(holds(read_file(csv), {",collective,root,machines,level\n", ",reduce,1,1,all\n"}));
  EXPECT_TRUE(holds(read_file(page), {"<title>Reduce (Ringlet)", "ringlet bench reduce",
                                      "reduce to rank 1, f32 max in place", "\u00d7 1 for p ranks",
                                      ">Here: up to "}));
}

TEST(CollectivesBench, StandsBesideAllReduceAndIsNotComparedWithIt) {
  const TemporaryDirectory folder;
  const std::string a = folder / "a.json", b = folder / "b.json", page = folder / "page.html";
  ASSERT_TRUE(succeeds(ringlet(quick_bench("all-reduce", {"--strategies", "ring", "--json", a}))));
  const Outcome both =
      ringlet(quick_bench("all-gather", {"--with", a, "--json", b, "--report", page}));
  ASSERT_TRUE(succeeds(both));
  EXPECT_TRUE(holds(both.out, {"2 ranks, f32 sum in place, by --with",
                               "all of 2 ranks, all-gather, f32 in place"}));
  EXPECT_TRUE(holds(read_file(page), {"<title>Collectives (Ringlet)", "ringlet bench</p>",
                                      "(p-1)/p of all-gather, \u00d7 2 (p-1)/p of all-reduce"}));
  EXPECT_TRUE(fails_with(1, ringlet({"compare", a, b}), {"no row in common"}));
  const Outcome same = ringlet({"compare", b, b});
  EXPECT_TRUE(succeeds(same));
  EXPECT_TRUE(holds(same.out, {"all-gather, f32 in place"}));
}

TEST(CollectivesBench, CountsSizesAsNcclTestsDo) {
  const TemporaryDirectory folder;
  for (const std::string& name : others()) {
    const std::string file = folder / (name + ".json");
    ASSERT_TRUE(succeeds(ringlet(quick_bench(name, {"--ranks", "3", "--json", file}))));
    const auto document = json_or_discarded(read_file(file));
    const nlohmann::json& row = document.at("rows").at(0);
    const bool has_parts = name == "all-gather" || name == "reduce-scatter" || name == "all-to-all";
    EXPECT_EQ(row.at("bytes"), has_parts ? 4092 : 4096) << name;  // whole elements of three parts
    EXPECT_EQ(row.at("count"), has_parts ? 341 : 1024) << name;
    EXPECT_EQ(row.at("in_place"), name != "all-to-all" && name != "send-recv") << name;
    EXPECT_EQ(row.at("wrong"), 0) << name;
  }
}

TEST(CollectivesBench, RunsInPlaceAndNot) {
  for (const std::string& name : others()) {
    const bool is_apart = name == "all-to-all" || name == "send-recv";
    const char* const flag = is_apart ? "--in-place" : "--out-of-place";
    const Outcome outcome = ringlet(quick_bench(name, {flag, "--ranks", "3"}));
    EXPECT_TRUE(succeeds(outcome));
    EXPECT_TRUE(holds(outcome.out, {is_apart ? " in place" : " out of place"}));
  }
}

TEST(CollectivesBench, RefusesWhatCannotBeInOneLine) {
  const struct {
    Arguments line;
    std::vector<std::string> parts;
  } lines[] = {
      {{"all-gather", "--ranks", "1"}, {"--ranks", "'1'", "from 2"}},
      {{"all-gather", "-b", "4"}, {"--begin 4 holds no element of 4 bytes for each of 2 ranks"}},
      {{"all-to-all", "-e", "9999999999G"}, {"--end", "is no size"}},
      {{"broadcast", "--root", "2"}, {"--root 2 is none of 2 ranks; give one from 0 to 1"}},
      {{"reduce", "--ranks", "4,2", "-r", "3"}, {"--root 3 is none of 2 ranks"}},
      {{"reduce", "--root", "-1"}, {"--root", "'-1'"}},
      {{"all-gather", "--op", "sum"}, {"'--op' is not known to 'ringlet bench all-gather'"}},
      {{"all-gather", "--strategies", "ring"}, {"'--strategies' is not known to"}},
      {{"send-recv", "--out-of-place"}, {"'--out-of-place' is not known to"}},
  };
  for (const auto& line : lines) {
    const Outcome outcome = ringlet(Arguments{"bench"} + line.line);
    EXPECT_TRUE(fails_with(2, outcome, {}));
    for (const std::string& part : line.parts) EXPECT_TRUE(holds(outcome.err, {part}));
    EXPECT_EQ(outcome.out, "");
  }
}

}  // namespace
}  // namespace ringlet::testing
