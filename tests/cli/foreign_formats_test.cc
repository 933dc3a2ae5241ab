// `--format nccl` and `--format osu`, read by the rules of scripts that read the originals.
#include <cmath>
#include <regex>
#include <sstream>
#include <string>
#include <vector>

#include "tests/cli/program.h"

namespace ringlet::testing {
namespace {

using Words = std::vector<std::string>;

const std::vector<std::string>& collectives() {
  static const std::vector<std::string> names{"all-reduce", "all-gather", "reduce-scatter",
                                              "broadcast",  "reduce",     "all-to-all",
                                              "send-recv"};
  return names;
}

std::vector<std::string> lines_of(const std::string& text) {
  std::istringstream stream(text);
  std::vector<std::string> lines;
  for (std::string line; std::getline(stream, line);) lines.push_back(line);
  return lines;
}

Words words_of(const std::string& line) {
  std::istringstream stream(line);
  Words words;
  for (std::string word; stream >> word;) words.push_back(word);
  return words;
}

/// The rule of all such scripts: what begins with # is skipped, and so is an empty line.
std::vector<Words> rows_of(const std::string& text) {
  std::vector<Words> rows;
  for (const std::string& line : lines_of(text)) {
    if (!line.empty() && line[0] != '#') rows.push_back(words_of(line));
  }
  return rows;
}

/// What stands behind the pattern; "" where it is not.
std::string after(const std::string& text, const std::string& pattern) {
  std::smatch match;
  return std::regex_search(text, match, std::regex(pattern)) ? match[1].str() : "";
}

Arguments quick_foreign(const std::string& collective, const Arguments& more) {
  return Arguments{"bench", collective, "-b", "1K", "-e", "16K", "-f", "4", "-n", "3", "-w", "1"} +
         more;
}

TEST(NcclFormat, IsReadAsNcclTestsOutput) {
  for (const std::string& name : collectives()) {
    for (const Arguments& more : {Arguments{}, Arguments{"--processes", "--ranks", "3"}}) {
      SCOPED_TRACE(name);
      const Outcome outcome = ringlet(quick_foreign(name, Arguments{"--format", "nccl"} + more));
      ASSERT_TRUE(succeeds(outcome));
      const std::vector<Words> rows = rows_of(outcome.out);
      ASSERT_EQ(rows.size(), 3u) << outcome.out;
      double sum = 0;
      for (const Words& row : rows) {
        ASSERT_EQ(row.size(), 13u);
        const double size = std::stod(row[0]);
        EXPECT_EQ(row[2], "float");
        const bool reduces = name.find("reduce") != std::string::npos;
        EXPECT_EQ(row[3], reduces ? "sum" : "none");
        EXPECT_EQ(row[4], name == "broadcast" || name == "reduce" ? "0" : "-1");
        for (const std::size_t place : {5u, 9u}) {  // out of place, in place
          const double us = std::stod(row[place]), algbw = std::stod(row[place + 1]);
          constexpr double kRounded = 0.00501;  // both are printed with two decimals
          EXPECT_GT(us, kRounded);
          EXPECT_GE(algbw, size / (us + kRounded) * 1e-3 - kRounded);
          EXPECT_LE(algbw, size / (us - kRounded) * 1e-3 + kRounded);
          sum += std::stod(row[place + 2]);
          EXPECT_EQ(row[place + 3], "0");
        }
      }
      const std::string average = after(outcome.out, "# Avg bus bandwidth\\s*:\\s*([0-9.e+-]+)");
      ASSERT_NE(average, "");
      EXPECT_NEAR(std::stod(average), sum / 6, 0.006);
      EXPECT_EQ(after(outcome.out, "# Out of bounds values : ([0-9]+ [A-Z]+)\n"), "0 OK");
    }
  }
}

TEST(NcclFormat, HasTheColumnsUnderTheirNames) {
  const Outcome outcome = ringlet(quick_foreign("all-reduce", {"--format", "nccl"}));
  ASSERT_TRUE(succeeds(outcome));
  Words names;
  std::size_t wide = 0;
  for (const std::string& line : lines_of(outcome.out)) {
    if (line.find("redop") == std::string::npos) continue;
    names = words_of(line);
    wide = line.size();
  }
  EXPECT_EQ(names, (Words{"#", "size", "count", "type", "redop", "root", "time", "algbw", "busbw",
                          "#wrong", "time", "algbw", "busbw", "#wrong"}));
  for (const std::string& line : lines_of(outcome.out)) {
    if (line[0] != '#') {
      EXPECT_EQ(line.size(), wide);
    }
  }
  EXPECT_TRUE(
      holds(outcome.out, {"# nThread 2 nGpus 1 minBytes 1024 maxBytes 16384 step: 4(factor) warmup "
                          "iters: 1 iters: 3 agg iters: 1 validation: 1 graph: 0\n",
                          "#  Rank  1 device cpu\n", "# ringlet auto, 2 ranks"}));
}

TEST(NcclFormat, HasATableForEachStrategyAndNumberOfRanks) {
  const Outcome outcome = ringlet(quick_foreign(
      "all-reduce", {"--format", "nccl", "--strategies", "ring,naive", "--ranks", "2,3"}));
  ASSERT_TRUE(succeeds(outcome));
  EXPECT_EQ(rows_of(outcome.out).size(), 12u);
  EXPECT_TRUE(holds(outcome.out, {"# ringlet ring, 2 ranks", "# ringlet naive, 3 ranks"}));
  EXPECT_EQ(outcome.out.find("fastest"), std::string::npos);
}

TEST(NcclFormat, UnderstandsNcclTestsLetters) {
  const Outcome unchecked = ringlet(quick_foreign("all-gather", {"--format", "nccl", "-c", "0"}));
  ASSERT_TRUE(succeeds(unchecked));
  for (const Words& row : rows_of(unchecked.out)) EXPECT_EQ(row.at(8), "N/A");
  EXPECT_TRUE(holds(unchecked.out, {"validation: 0"}));
  const Outcome rooted =
      ringlet(quick_foreign("broadcast", {"--format", "nccl", "-r", "1", "-z", "1"}));
  ASSERT_TRUE(succeeds(rooted));
  for (const Words& row : rows_of(rooted.out)) EXPECT_EQ(row.at(4), "1");
  EXPECT_TRUE(succeeds(ringlet(quick_foreign("all-reduce", {"-c", "1", "-z", "1"}))));

  EXPECT_TRUE(fails_with(2, ringlet(quick_foreign("all-reduce", {"-g", "2"})),
                         {"'-g'", "did you mean --ranks N --device cuda?"}));
  EXPECT_TRUE(fails_with(2, ringlet(quick_foreign("all-reduce", {"-t", "2"})),
                         {"'-t'", "did you mean --ranks N?"}));
  EXPECT_TRUE(
      fails_with(2, ringlet(quick_foreign("all-reduce", {"-z", "0"})), {"-z: '0'", "by itself"}));
  EXPECT_TRUE(fails_with(2, ringlet(quick_foreign("all-reduce", {"-c", "some"})), {"-c: 'some'"}));
  EXPECT_TRUE(fails_with(2, ringlet(quick_foreign("reduce", {"--format", "nccl", "-r", "2"})),
                         {"--root 2 is none of 2 ranks"}));
  EXPECT_TRUE(fails_with(2, ringlet(quick_foreign("reduce", {"--format", "nccl", "--csv", "-"})),
                         {"both write to standard output"}));
  EXPECT_TRUE(fails_with(2, ringlet(quick_foreign("reduce", {"--format", "ncll"})),
                         {"--format", "did you mean nccl?"}));
}

TEST(OsuFormat, IsReadAsOsusOutput) {
  for (const std::string& name : collectives()) {
    SCOPED_TRACE(name);
    const Outcome outcome = ringlet(quick_foreign(name, {"--format", "osu"}));
    ASSERT_TRUE(succeeds(outcome));
    EXPECT_TRUE(holds(outcome.out, {"\n# OSU MPI ", " Latency Test", "\n# Datatype: MPI_FLOAT.\n",
                                    "\n# Size       Avg Latency(us)\n"}));
    const std::vector<Words> rows = rows_of(outcome.out);
    ASSERT_EQ(rows.size(), 3u);
    // OSU's size is that of a rank's part where ranks give a part to each.
    const bool is_of_a_part = name == "all-gather" || name == "all-to-all";
    EXPECT_EQ(rows[0].at(0), is_of_a_part ? "512" : "1024");
    for (const Words& row : rows) {
      ASSERT_EQ(row.size(), 2u);
      EXPECT_GT(std::stod(row[1]), 0);
    }
  }
}

TEST(OsuFormat, HasLeastMostAndCallsWhereAllIsAskedFor) {
  const Outcome outcome =
      ringlet(quick_foreign("all-reduce", {"--format", "osu-full", "--ranks", "3", "--processes"}));
  ASSERT_TRUE(succeeds(outcome));
  EXPECT_TRUE(holds(outcome.out, {"\n# OSU MPI Allreduce Latency Test",
                                  "\n# Size       Avg Latency(us)   Min Latency(us)   Max "
                                  "Latency(us)  Iterations\n"}));
  const std::vector<Words> rows = rows_of(outcome.out);
  ASSERT_EQ(rows.size(), 3u);
  for (const Words& row : rows) {
    ASSERT_EQ(row.size(), 5u);
    EXPECT_LE(std::stod(row[2]), std::stod(row[1]));
    EXPECT_LE(std::stod(row[1]), std::stod(row[3]));
    EXPECT_EQ(row[4], "3");
  }
}

}  // namespace
}  // namespace ringlet::testing
