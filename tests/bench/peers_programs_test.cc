// The peers as they are started: what they print is right, and what they refuse they refuse in a
// line.
#include <filesystem>
#include <nlohmann/json.hpp>
#include <set>
#include <sstream>

#include "base/files/json_text.h"
#include "tests/cli/program.h"
#include "tests/support/testdata.h"

namespace ringlet::testing {
namespace {

Outcome run(const std::string& line) { return Program(ShellLine{line}).wait(60); }

std::vector<nlohmann::json> rows_of(const Outcome& outcome) {
  std::istringstream text(outcome.out);
  std::vector<nlohmann::json> rows;
  for (std::string line; std::getline(text, line);) rows.push_back(parse_json(line));
  return rows;
}

void expect_sound(const nlohmann::json& row) {
  EXPECT_EQ(row.at("wrong"), 0) << row;
  EXPECT_EQ(row.at("ranks"), 2) << row;
  EXPECT_EQ(row.at("iterations"), 3) << row;
  EXPECT_GT(row.at("min_us"), 0.0) << row;
  EXPECT_LE(row.at("min_us"), row.at("median_us")) << row;
  EXPECT_LE(row.at("median_us"), row.at("p99_us")) << row;
}

/// Expects nothing on stdout and one line on stderr.
void expect_refused(const Outcome& outcome, const std::string& program) {
  EXPECT_EQ(outcome.code, 2) << outcome.err;
  EXPECT_EQ(outcome.out, "");
  EXPECT_TRUE(outcome.err.starts_with(program + ": error: ")) << outcome.err;
  EXPECT_EQ(outcome.err.find('\n'), outcome.err.size() - 1) << outcome.err;
}

const std::string kTiny = " --sizes 4,24,4000,40K --iterations 3 --warmup 1";

class GlooPeer : public ::testing::Test {
 protected:
  void SetUp() override {
    if (!std::filesystem::exists(program_)) GTEST_SKIP() << "built without Gloo (libgloo-dev)";
  }
  const std::string program_ = built("bench/peers/gloo_all_reduce");
};

TEST_F(GlooPeer, SumsRightlyByEveryAlgorithm) {
  const Outcome outcome = run(program_ + kTiny);
  ASSERT_EQ(outcome.code, 0) << outcome.err;
  const auto rows = rows_of(outcome);
  EXPECT_EQ(rows.size(),
            4U * (6 + 4 + 4));  // gloo::allreduce() has only one of the three transports
  std::set<std::string> strategies;
  for (const auto& row : rows) {
    expect_sound(row);
    EXPECT_EQ(row.at("engine"), "gloo");
    strategies.insert(row.at("strategy"));
  }
  EXPECT_EQ(strategies.size(), 6U);
}

TEST_F(GlooPeer, TakesMoreRanksThanProcessors) {
  const Outcome outcome =
      run(program_ + " --ranks 5 --sizes 4000 -n 2 -w 1 --strategies ring,halving-doubling" +
          " --transports tcp");
  ASSERT_EQ(outcome.code, 0) << outcome.err;
  for (const auto& row : rows_of(outcome)) EXPECT_EQ(row.at("wrong"), 0) << row;
}

TEST_F(GlooPeer, RefusesWhatItDoesNotKnow) {
  for (const std::string flags : {"--ranks 1", "--sizes 6", "--strategies rign", "--iterations 0",
                                  "--rank 2", "--sizes 4X", "--begin 64 --end 8"}) {
    SCOPED_TRACE(flags);
    expect_refused(run(program_ + " " + flags), "gloo_all_reduce");
  }
}

TEST_F(GlooPeer, ExplainsItsFlags) {
  const Outcome outcome = run(program_ + " --help");
  EXPECT_EQ(outcome.code, 0);
  EXPECT_TRUE(holds(outcome.out, {"--sizes", "--ranks", "--strategies", "halving-doubling"}));
}

class OpenMpiPeer : public ::testing::Test {
 protected:
  void SetUp() override {
    if (!std::filesystem::exists(program_))
      GTEST_SKIP() << "built without Open MPI (libopenmpi-dev)";
    if (run("mpirun --version").code != 0) GTEST_SKIP() << "mpirun is not installed (openmpi-bin)";
  }
  /// Two ranks; `how`: flags of mpirun.
  Outcome mpirun(const std::string& how, const std::string& flags) const {
    return run(
        "mpirun --allow-run-as-root --oversubscribe -n 2 --mca pml ob1 --mca btl self,vader " +
        how + " " + program_ + flags);
  }
  const std::string program_ = built("bench/peers/openmpi_all_reduce");
};

TEST_F(OpenMpiPeer, SumsRightlyAndSaysWhichAlgorithmRan) {
  const Outcome outcome =
      mpirun("--mca coll_tuned_use_dynamic_rules 1 --mca coll_tuned_allreduce_algorithm 4", kTiny);
  ASSERT_EQ(outcome.code, 0) << outcome.err;
  const auto rows = rows_of(outcome);
  EXPECT_EQ(rows.size(), 4U);
  for (const auto& row : rows) {
    expect_sound(row);
    EXPECT_EQ(row.at("engine"), "openmpi");
    EXPECT_EQ(row.at("strategy"), "ring");
    EXPECT_TRUE(row.at("transport").get<std::string>().starts_with("vader")) << row;
  }
}

TEST_F(OpenMpiPeer, NamesWhatMpirunLeftToIt) {
  const Outcome outcome = mpirun("--mca coll_tuned_allreduce_algorithm 4", " --sizes 64 -n 3 -w 1");
  ASSERT_EQ(outcome.code, 0) << outcome.err;
  EXPECT_EQ(rows_of(outcome).at(0).at("strategy"), "default");  // the rules that look at it are off
}

TEST_F(OpenMpiPeer, RunsEveryCollectiveRightly) {
  for (const std::string name :
       {"all-gather", "reduce-scatter", "broadcast", "reduce", "all-to-all", "send-recv"}) {
    SCOPED_TRACE(name);
    const Outcome outcome =
        mpirun("", " --collective " + name + " --sizes 8,24,4004,40K --iterations 3 --warmup 1");
    ASSERT_EQ(outcome.code, 0) << outcome.err;
    const auto rows = rows_of(outcome);
    ASSERT_EQ(rows.size(), 4U);
    const bool has_parts = name == "all-gather" || name == "reduce-scatter" || name == "all-to-all";
    for (const auto& row : rows) {
      expect_sound(row);
      EXPECT_EQ(row.at("collective"), name);
      EXPECT_EQ(row.at("strategy"), "default");
    }
    EXPECT_EQ(rows[2].at("bytes"), has_parts ? 4000 : 4004);  // whole floats of two parts
    EXPECT_EQ(rows[3].at("count"), has_parts ? 5120 : 10240);
  }
}

TEST_F(OpenMpiPeer, RefusesWhatItCannotDivide) {
  const Outcome outcome = mpirun("", " --collective all-gather --sizes 4 -n 3");
  EXPECT_NE(outcome.code, 0);
  EXPECT_TRUE(holds(outcome.err, {"openmpi_all_reduce: error: 4 bytes hold no float for each of 2 "
                                  "ranks; give 8 or more"}));
}

TEST_F(OpenMpiPeer, RefusesAWrongFlagOnce) {
  const Outcome outcome =
      run(program_ + " --size 4");  // a world of one, without mpirun's own complaint
  expect_refused(outcome, "openmpi_all_reduce");
}

const std::string kFloorProgram = built("bench/peers/floor_all_reduce");

TEST(FloorOfThePeers, SumsRightlyByEveryStrategyAtAnySize) {
  const Outcome outcome =
      run(kFloorProgram + " --sizes 4,24,4K,4004,516272,516K,1M --iterations 3 --warmup 1");
  ASSERT_EQ(outcome.code, 0) << outcome.err;
  const auto rows = rows_of(outcome);
  EXPECT_EQ(rows.size(), 7U * 3);
  std::set<std::string> strategies;
  for (const auto& row : rows) {
    expect_sound(row);
    EXPECT_EQ(row.at("engine"), "floor");
    EXPECT_EQ(row.at("ranks_as"), "threads");
    strategies.insert(row.at("strategy"));
  }
  EXPECT_EQ(strategies, (std::set<std::string>{"one-shot", "two-shot", "two-shot-four-streams"}));
}

TEST(FloorOfThePeers, SumsRightlyInPhasesOfAnyRadixOnThreadsAndProcesses) {
  // Twelve ranks in phases of 12, 4 x 3, 3 x 2 x 2 and 2 x 2 x 3; seven have a single phase.
  for (const std::string how : {"--ranks 12 --radix 12,4,3,2", "--ranks 7 --radix 2"}) {
    for (const std::string as : {"threads", "processes"}) {
      SCOPED_TRACE(how + " " + as);
      const Outcome outcome = run(kFloorProgram + " " + how + " --sizes 4,4004 -n 2 -w 1" +
                                  (as == "processes" ? " --processes" : ""));
      ASSERT_EQ(outcome.code, 0) << outcome.err;
      const auto rows = rows_of(outcome);
      EXPECT_EQ(rows.size(), how.find("12") != std::string::npos ? 2U * 2 * 4 : 2U * 2);
      std::set<std::string> strategies;
      for (const auto& row : rows) {
        EXPECT_EQ(row.at("wrong"), 0) << row;
        EXPECT_EQ(row.at("ranks_as"), as);
        strategies.insert(row.at("strategy"));
      }
      EXPECT_TRUE(strategies.contains("two-shot-radix-2")) << strategies.size();
    }
  }
}

TEST(FloorOfThePeers, SumsRightlyOnOneProcessor) {
  const Outcome outcome = run(
      "taskset -c $(sed -n 's/^Cpus_allowed_list:[^0-9]*\\([0-9]*\\).*/\\1/p' /proc/self/status)"
      " " +
      kFloorProgram + " --sizes 4004 --iterations 3 --warmup 1");
  ASSERT_EQ(outcome.code, 0) << outcome.err;
  EXPECT_EQ(rows_of(outcome).size(), 3U);
  for (const auto& row : rows_of(outcome)) expect_sound(row);
}

TEST(FloorOfThePeers, RefusesWhatItDoesNotKnow) {
  for (const std::string flags :
       {"--ranks 1", "--radix 1", "--sizes 6", "--strategies ring", "--seconds 0"}) {
    SCOPED_TRACE(flags);
    expect_refused(run(kFloorProgram + " " + flags), "floor_all_reduce");
  }
}

}  // namespace
}  // namespace ringlet::testing
