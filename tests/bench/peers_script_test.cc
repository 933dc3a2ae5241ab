// bench/peers/all_reduce on programs that only pretend to measure, so that the figures which it
// puts together are known to the digit.
#include <nlohmann/json.hpp>

#include "base/files/json_text.h"
#include "tests/cli/program.h"
#include "tests/support/files.h"
#include "tests/support/testdata.h"

namespace ringlet::testing {
namespace {

namespace fs = std::filesystem;

/// What both pretenders print: a row with $1 as engine, $2 as ranks, $3 bytes, $4 us and $5 wrong
/// elements.
constexpr const char* kRow = R"(row() {
  printf '{"engine":"%s","ranks_as":"%s","transport":"local","strategy":"ring","ranks":2,"bytes":%s,' "$1" "$2" "$3"
  printf '"iterations":7,"median_us":%s,"min_us":1,"p99_us":99,"wrong":%s,"cores_ns":[%s],' "$4" "$5" "$6"
  printf '"shared_core":%s}' "${SHARED:-0}"
}
calls=$(wc -l <"$LOG")
round=$((calls / 3 + 1))
)";

/// Ringlet: 10, 20, 40 us in rounds 1, 2, 3 as threads; twice that as processes.
constexpr const char* kRinglet = R"(
[ "$3" = --help ] && exit 0
as=threads us=$((10 << calls / 3))
while [ $# -gt 0 ]; do
  case $1 in --processes) as=processes us=$((2 * us)) ;; --begin) size=$2 ;; --json) file=$2 ;; esac
  shift
done
eval ns=\$OURS_$round
at=; for one in $ns; do at="$at${at:+,}{\"nanoseconds\":$one}"; done
{ printf '{"machine":{"processor":"pretended","core_distances":[%s]},"rows":[' "$at"
  row ringlet $as $size $us ${WRONG_OURS:-0} | sed "s/}\$/,\"counts\":${COUNTS:-true}}/"
  printf ']}'; } >"$file"
echo "$as" >>"$LOG"
[ "${WRONG_OURS:-0}" = 0 ]
)";

/// Gloo: 30, 30, 200 us by one of its algorithms, nothing by the others.
constexpr const char* kGloo = R"(
case "$*" in *"--transports tcp --strategies ring "*) ;; *) exit 0 ;; esac
while [ $# -gt 0 ]; do [ "$1" = --sizes ] && size=$2; shift; done
eval ns=\$PEER_$round
SHARED=${PEER_SHARED:-${SHARED:-0}}
row gloo processes $size $([ "$calls" -lt 8 ] && echo 30 || echo 200) ${WRONG:-0} "$ns"; echo
echo gloo >>"$LOG"
)";

/// The floor: faster than all, and wrong where $WRONG_FLOOR says so.
constexpr const char* kFloor = R"(
while [ $# -gt 0 ]; do [ "$1" = --sizes ] && size=$2; shift; done
eval ns=\$PEER_$round
row floor threads $size 6 ${WRONG_FLOOR:-0} "$ns"; echo
)";

class PeersScript : public ::testing::Test {
 protected:
  void SetUp() override {
    if (Program(ShellLine{"python3 -c 0"}).wait().code != 0) {
      GTEST_SKIP() << "python3 is not installed";
    }
    write_file(folder_ / "log", "");
    pretend("bin", "ringlet", kRinglet);
    pretend("bench/peers", "gloo_all_reduce", kGloo);
  }
  void pretend(const std::string& where, const std::string& name, const std::string& what) {
    fs::create_directories(folder_ / where);
    const fs::path program = folder_ / (where + "/" + name);
    write_file(program, "#!/bin/sh\n" + std::string(kRow) + what);
    fs::permissions(program, fs::perms::owner_all);
  }
  Outcome run(const std::string& flags, const std::string& environment = "") const {
    return Program(ShellLine{"LOG=" + (folder_ / "log").string() + " " + environment + " " +
                             checkout("bench/peers/all_reduce") + " --build " +
                             folder_.path().string() + " " + flags})
        .wait(60);
  }

  const TemporaryDirectory folder_;
};

TEST_F(PeersScript, AlternatesAndTakesRatiosWithinARound) {
  const Outcome outcome =
      run("--sizes 4K --rounds 3 --only ringlet,gloo --out " + (folder_ / "out.json").string());
  ASSERT_EQ(outcome.code, 0) << outcome.err;
  const std::string once = "threads\nprocesses\ngloo\n";
  EXPECT_EQ(read_file(folder_ / "log"), once + once + once);

  const auto json = parse_json(read_file(folder_ / "out.json"));
  EXPECT_EQ(json.at("machine").at("processor"), "pretended");
  ASSERT_EQ(json.at("rows").size(), 3U);
  const auto& threads = json.at("rows").at(0);
  EXPECT_EQ(threads.at("median_us"), 20);
  EXPECT_EQ(threads.at("rounds").at(2),
            (nlohmann::json{{"round", 3}, {"median_us", 40}, {"cores", nullptr}}));
  EXPECT_NEAR(threads.at("busbw_gbs"), 4096 / 20e3, 1e-9);
  ASSERT_EQ(json.at("ratios").size(), 2U);
  EXPECT_EQ(json.at("ratios").at(0).at("rounds"), (nlohmann::json{3.0, 1.5, 5.0}));
  EXPECT_EQ(json.at("ratios").at(0).at("ratio"), 3.0);  // of the medians it would be 1.5
  EXPECT_EQ(json.at("ratios").at(0).at("cores"), "all");
  EXPECT_EQ(json.at("ratios").at(1).at("ratio"), 1.5);
  EXPECT_TRUE(
      holds(outcome.out, {"ringlet threads local ring", "gloo local ring", "30.0*",
                          "distance not known", "4K: 3.00 times as fast as the best peer"}));
}

TEST_F(PeersScript, ComparesNearWithNearAndFarWithFar) {
  // Gloo is far in the last round; ours is near in the first and moves in the second.
  const Outcome outcome =
      run("--sizes 4K --rounds 3 --only ringlet,gloo --out " + (folder_ / "out.json").string(),
          "OURS_1='20 30' OURS_2='20 150' OURS_3='150 160' PEER_1='30,30' PEER_2='30,30' "
          "PEER_3='150,160'");
  ASSERT_EQ(outcome.code, 0) << outcome.err;
  const auto json = parse_json(read_file(folder_ / "out.json"));
  std::vector<std::string> seen;
  for (const auto& ratio : json.at("ratios")) {
    if (ratio.at("ours").at(1) != "threads") continue;
    seen.push_back(ratio.at("cores"));
    EXPECT_EQ(ratio.at("rounds").size(), 1U);
    EXPECT_EQ(ratio.at("ratio"), seen.back() == "near" ? 3.0 : 5.0);
  }
  EXPECT_EQ(seen, (std::vector<std::string>{"near", "far"}));
  EXPECT_TRUE(holds(outcome.out, {"cores near", "cores far", "4K, near: 3.00", "4K, far: 5.00"}));
}

TEST_F(PeersScript, ComparesSharedCoresWithSharedCores) {
  const std::string once = "--sizes 4K --rounds 1 --only ringlet,gloo";
  const Outcome shared = run(once, "SHARED=0.9 OURS_1='20 30' PEER_1='30,30'");
  EXPECT_TRUE(holds(shared.out, {"cores shared", "4K, shared: 3.00 times"}));
  const Outcome alone = run(once, "SHARED=0.2 OURS_2='20 30' PEER_2='30,30'");
  EXPECT_TRUE(holds(alone.out, {"cores near", "4K, near: 1.50 times"}));
  const Outcome unlike = run(once, "SHARED=0.9 PEER_SHARED=0 OURS_3='20 30' PEER_3='30,30'");
  EXPECT_TRUE(holds(unlike.out, {"cores shared", "cores near", "4K: "}));
  EXPECT_EQ(unlike.out.find("4K, "), std::string::npos) << unlike.out;
}

TEST_F(PeersScript, SetsAFloorBesideThatIsNeitherOursNorAPeer) {
  pretend("bench/peers", "floor_all_reduce", kFloor);
  const std::string all = "--sizes 4K --rounds 3 --only ringlet,gloo,floor";
  const Outcome outcome = run(all + " --out " + (folder_ / "out.json").string());
  ASSERT_EQ(outcome.code, 0) << outcome.err;
  const std::string said =
      "4K: our threads take 20.0 us, the bare floor 6.0; a third of the best peer's 30.0 would be "
      "10.0\n";
  EXPECT_TRUE(holds(outcome.out, {"floor local ring", "6.0 \n", "gloo local ring", "30.0*",
                                  "4K: 3.00 times as fast as the best peer", said}));
  EXPECT_FALSE(holds(outcome.out, {"6.0*"}));
  const auto json = parse_json(read_file(folder_ / "out.json"));
  ASSERT_EQ(json.at("ratios").size(), 2U);
  for (const auto& ratio : json.at("ratios")) EXPECT_EQ(ratio.at("peer").at(0), "gloo");
  EXPECT_EQ(json.at("rows").size(), 4U);
}

TEST_F(PeersScript, SaysOfTheFloorWhatWasMeasuredAtItsDistance) {
  pretend("bench/peers", "floor_all_reduce", kFloor);
  const Outcome outcome = run("--sizes 4K --rounds 3 --only ringlet,gloo,floor",
                              "OURS_1='20 30' OURS_2='20 150' OURS_3='20 30' PEER_1='30,30' "
                              "PEER_2='30,30' PEER_3='150,160'");
  ASSERT_EQ(outcome.code, 0) << outcome.err;
  // Ours took 10 and 40 us near; Gloo 30 and 30 near, 200 far.
  EXPECT_TRUE(holds(outcome.out, {"4K, near: our threads take 25.0 us, the bare floor 6.0; a third "
                                  "of the best peer's 30.0 would be 10.0\n",
                                  "4K, far: the bare floor takes 6.0 us; a third of the best "
                                  "peer's 200.0 would be 66.7\n"}));
  const Outcome alone = run("--sizes 4K --rounds 1 --only floor", "WRONG_FLOOR=2");
  EXPECT_EQ(alone.code, 1);
  EXPECT_FALSE(holds(alone.out, {"floor takes"}));
  EXPECT_TRUE(holds(alone.err, {"floor threads local ring at 4096 bytes: 2 wrong elements"}));
}

TEST_F(PeersScript, MakesATableOfWhatItHasWritten) {
  pretend("bench/peers", "floor_all_reduce", kFloor);
  const std::string file = (folder_ / "out.json").string();
  run("--sizes 4K --rounds 3 --only ringlet,gloo,floor --out " + file);
  const Outcome outcome = run("--table " + file);
  EXPECT_EQ(outcome.code, 0) << outcome.err;
  EXPECT_EQ(
      outcome.out,
      "| bytes | cores | our threads, µs | our processes, µs | best peer, µs | bare floor, µs "
      "| threads : peer | processes : peer |\n| --- | --- | --- | --- | --- | --- | --- | --- "
      "|\n| 4K | all | 20.0 ring | 40.0 ring | 30.0 gloo ring | 6.0 ring | 3.00 | 1.50 |\n");

  write_file(folder_ / "other.json", "{}");
  const Outcome other = run("--table " + (folder_ / "other.json").string());
  EXPECT_EQ(other.code, 1);
  EXPECT_TRUE(holds(other.err, {"all_reduce: error: ", "is nothing that --out has written"}));
}

TEST_F(PeersScript, GivesTheFloorAsManyRanks) {
  pretend("bench/peers", "floor_all_reduce", "echo \"$@\" >>\"$LOG\"\n" + std::string(kFloor));
  const Outcome outcome = run("--sizes 4K --rounds 1 --ranks 4 --only floor");
  EXPECT_EQ(outcome.code, 0) << outcome.err;
  EXPECT_EQ(read_file(folder_ / "log"), "--ranks 4 --sizes 4096\n");
}

TEST_F(PeersScript, PassesOverWheelsAndPyTorchUnlessItIsToldWhereTheyAre) {
  const Outcome outcome = run("--sizes 4K --rounds 1 --only gloo,openmpi5,mpich,oneccl,torch");
  EXPECT_EQ(outcome.code, 0) << outcome.err;
  EXPECT_TRUE(holds(outcome.err,
                    {"openmpi5 comes as a wheel from PyPI; passed over (--wheels installs it)",
                     "mpich comes", "oneccl comes", "PyTorch is passed over (--python names"}));
  const Outcome absent = run("--sizes 4K --rounds 1 --only gloo,torch --python /no/python3");
  EXPECT_EQ(absent.code, 0) << absent.err;
  EXPECT_TRUE(holds(absent.err, {"PyTorch: ", "/no/python3", "passed over"}));
}

/// Wheels that are installed already, so nothing is fetched; what they run prints a row of 5 us.
TEST_F(PeersScript, RunsWhatWheelsBringAndSaysWhatDoesNotCompile) {
  const fs::path wheels = folder_ / "wheels";
  for (const std::string name : {"mpich", "oneccl"}) fs::create_directories(wheels / name / "bin");
  write_file(wheels / "mpich/installed", "mpich");
  write_file(wheels / "oneccl/installed", "oneccl oneccl-devel impi-devel");
  write_file(folder_ / "bench/peers/wheels.args", "");
  write_file(folder_ / "bench/peers/libringlet_peers.a", "");
  pretend("wheels/mpich/bin", "mpiexec.hydra",
          "while [ $# -gt 0 ]; do [ \"$1\" = --sizes ] && size=$2; shift; done\n"
          "row mpich processes $size 5 0 30,30; echo");
  write_file(folder_ / "compile",
             "#!/bin/sh\ncase \"$*\" in *oneccl*) echo 'cc1plus: error: no ccl.hpp' >&2; exit 1; "
             "esac\nwhile [ \"$1\" != -o ]; do shift; done; : >\"$2\"\n");
  fs::permissions(folder_ / "compile", fs::perms::owner_all);
  const Outcome outcome =
      run("--sizes 4K --rounds 1 --only gloo,mpich,oneccl --wheels " + wheels.string(),
          "CXX=" + (folder_ / "compile").string());
  EXPECT_EQ(outcome.code, 0) << outcome.err;
  EXPECT_TRUE(holds(outcome.err, {"oneccl: oneccl does not compile: cc1plus: error: no ccl.hpp"}));
  EXPECT_TRUE(holds(outcome.out, {"mpich local ring", "5.0*"}));
}

/// A file of bench/peers/highest, its rows at 4 KiB, near.
class HighestTable : public PeersScript {
 protected:
  struct Round {
    int number;  // 0: the file has none
    double us;
  };
  void add(const std::string& engine, const std::string& as, const std::vector<Round>& rounds,
           int wrong = 0) {
    nlohmann::json list = nlohmann::json::array();
    for (const Round& round : rounds) {
      nlohmann::json one = {{"median_us", round.us}, {"cores", "near"}};
      if (round.number > 0) one["round"] = round.number;
      list.push_back(one);
    }
    content_["rows"].push_back({{"engine", engine},
                                {"ranks_as", as},
                                {"transport", "shm"},
                                {"strategy", "auto"},
                                {"bytes", 4096},
                                {"wrong", wrong},
                                {"rounds", list}});
  }
  std::string table() const {
    const std::string file = (folder_ / "highest.json").string();
    write_file(file, content_.dump());
    const Outcome outcome =
        Program(ShellLine{checkout("bench/peers/highest") + " --table " + file}).wait(60);
    EXPECT_EQ(outcome.code, 0) << outcome.err;
    return outcome.out;
  }

  nlohmann::json content_ = {
      {"date", "2026-11-28"},
      {"machine", {{"processor", "pretended"}, {"load_average", {0.5, 0, 0}}}},
      {"rows", nlohmann::json::array()},
      {"ratios", {{{"bytes", 4096}, {"cores", "near"}}}}};
};

TEST_F(HighestTable, TakesRatiosWithinARoundByItsNumber) {
  // The second round is ten times as slow for all. Threads were not near in it; processes were.
  add("mpich", "processes", {{1, 3}, {2, 30}, {3, 3}});
  add("ringlet", "threads", {{1, 1}, {3, 2}});
  add("floor", "threads", {{1, 0.5}, {2, 10}, {3, 1}});
  add("ringlet", "processes", {{2, 12}, {3, 1}});
  add("floor", "processes", {{1, 0.1}, {2, 10}, {3, 1}});
  // Of medians over different rounds it would be 2.00, 1.50, 0.46 and 6.50, and not met.
  EXPECT_TRUE(holds(table(), {"(n): of so many rounds:\n",
                              "| 1.5 | 1.0 | 2.25 (2) | 2.00 (2) "
                              "| 6.5 | 1.0 | 2.75 (2) | 1.10 (2) | yes |\n"}));
}

TEST_F(HighestTable, HasNoRatioOfWhatWasInNoRoundTogether) {
  add("mpich", "processes", {{1, 3}});
  add("ringlet", "threads", {{2, 1}});
  add("ringlet", "processes", {{1, 1}});
  add("floor", "threads", {{2, 1}});
  add("floor", "processes", {{1, 1}});
  EXPECT_TRUE(
      holds(table(), {"| 1.0 | 1.0 | – | 1.00 (1) | 1.0 | 1.0 | 3.00 (1) | 1.00 (1) | – |\n"}));
}

TEST_F(HighestTable, TakesRoundsWithoutNumbersInOrderWhereNoneIsMissing) {
  add("mpich", "processes", {{0, 3}, {0, 30}});
  add("ringlet", "threads", {{0, 1}, {0, 15}});
  add("floor", "threads", {{0, 1}});  // of one of the rounds, and nothing says which
  EXPECT_TRUE(holds(table(), {"its rounds have no numbers and are taken in order:\n",
                              "| 8.0 | 1.0 | 2.50 (2) | – | – | – | – | – | – |\n"}));
}

TEST_F(HighestTable, LeavesOutWhatGaveWrongResults) {
  add("mpich", "processes", {{1, 3}});
  add("intel-mpi", "processes", {{1, 0.1}}, 7);
  add("ringlet", "threads", {{1, 1}});
  add("floor", "threads", {{1, 1}}, 1);
  EXPECT_TRUE(holds(table(), {"| 3.0 mpich auto | 1.0 | – | 3.00 (1) | – |"}));
}

TEST_F(PeersScript, HoldsAutoAgainstTheHighestPeerAndTheFloor) {
  nlohmann::json content = {
      {"date", "2026-11-28"},
      {"machine", {{"processor", "pretended"}, {"load_average", {0.5, 0, 0}}}},
      {"rows", nlohmann::json::array()},
      {"ratios", {{{"bytes", 4096}, {"cores", "near"}}, {{"bytes", 8192}, {"cores", "near"}}}}};
  const auto add = [&](const std::string& engine, const std::string& as, int bytes, double us) {
    content["rows"].push_back({{"engine", engine},
                               {"ranks_as", as},
                               {"transport", "shm"},
                               {"strategy", "auto"},
                               {"bytes", bytes},
                               {"rounds", {{{"median_us", us}, {"cores", "near"}}}}});
  };
  for (const int bytes : {4096, 8192}) {
    add("mpich", "processes", bytes, 2);
    add("intel-mpi", "processes", bytes, 1.5);
    add("ringlet", "threads", bytes, 1);
    add("floor", "threads", bytes, 0.5);
    add("floor", "processes", bytes, 1);
  }
  add("ringlet", "processes", 4096, 1.15);  // within 1.15 of its floor
  add("ringlet", "processes", 8192, 1.2);   // neither
  const std::string file = (folder_ / "highest.json").string();
  write_file(file, content.dump());
  const auto highest = [](const std::string& of) {
    return Program(ShellLine{checkout("bench/peers/highest") + " --table " + of}).wait(60);
  };
  const Outcome outcome = highest(file);
  EXPECT_EQ(outcome.code, 0) << outcome.err;
  EXPECT_TRUE(
      holds(outcome.out, {"2026-11-28, pretended, load 0.5; (n): of so many rounds; its",
                          "| 4K | near | 1.5 intel-mpi auto | 1.0 | 0.5 | 1.50 (1) | 2.00 (1) "
                          "| 1.1 | 1.0 | 1.30 (1) | 1.15 (1) | yes |\n",
                          "| 8K | near | 1.5 intel-mpi auto | 1.0 | 0.5 | 1.50 (1) | 2.00 (1) "
                          "| 1.2 | 1.0 | 1.25 (1) | 1.20 (1) | no |\n"}));
  write_file(file, "{}");
  const Outcome other = highest(file);
  EXPECT_EQ(other.code, 1);
  EXPECT_TRUE(holds(other.err, {"is nothing that --out has written"}));
}

TEST_F(PeersScript, EndsWithOneWhereAResultIsWrong) {
  const Outcome outcome = run("--sizes 4K,8K --rounds 1 --only gloo", "WRONG=3");
  EXPECT_EQ(outcome.code, 1);
  EXPECT_TRUE(
      holds(outcome.err, {"error: gloo processes local ring at 8192 bytes: 3 wrong elements"}));
}

TEST_F(PeersScript, CountsOurOwnWrongResultsAndTakesNoTimeOfThem) {
  const std::string file = (folder_ / "out.json").string();
  const Outcome outcome =
      run("--sizes 4K --rounds 2 --only ringlet,gloo --out " + file, "WRONG_OURS=2");
  EXPECT_EQ(outcome.code, 1);
  EXPECT_TRUE(holds(outcome.err, {"error: ringlet threads local ring at 4096 bytes: 4 wrong",
                                  "error: ringlet processes local ring at 4096 bytes: 4 wrong"}));
  EXPECT_EQ(outcome.out.find("ringlet"), std::string::npos) << outcome.out;
  const auto json = parse_json(read_file(file));
  EXPECT_EQ(json.at("rows").size(), 3U);
  EXPECT_TRUE(json.at("ratios").empty());
}

TEST_F(PeersScript, SaysHowManyRoundsRingletWouldNotCount) {
  const std::string file = (folder_ / "out.json").string();
  const Outcome outcome =
      run("--sizes 4K --rounds 2 --only ringlet,gloo --out " + file, "COUNTS=false");
  EXPECT_EQ(outcome.code, 0) << outcome.err;
  EXPECT_TRUE(holds(outcome.out, {"4K: ", "4 of 6 measurements would not count by themselves"}));
  const auto rounds = parse_json(read_file(file)).at("rows").at(0).at("rounds");
  EXPECT_TRUE(rounds.at(1).contains("why_not")) << rounds;
}

/// bench/peers/machines on rows as it writes them.
TEST_F(PeersScript, TabulatesMachinesWithoutWrongResultsAndWithoutWhatWasPassedOver) {
  const auto row = [](const char* who, double us, int wrong) {
    return nlohmann::json{{"what", "all-reduce"}, {"who", who}, {"rate", "1gbit"},
                          {"bytes", 516096},      {"ranks", 2}, {"microseconds", us},
                          {"wrong", wrong}};
  };
  const nlohmann::json trained = {
      {"what", "train"}, {"who", "ringlet, overlap on, buckets of 64 KiB"},
      {"rate", "1gbit"}, {"samples_per_second", 1000},
      {"sync_ms", 4},    {"waited_ms", 3}};
  const std::string file = (folder_ / "machines.json").string();
  write_file(file, nlohmann::json{{"rows",
                                   {row("gloo: ring", 2000, 0), row("gloo: bcube", 1000, 0),
                                    row("gloo: bcube", 1000, 5), trained}}}
                       .dump());
  const Outcome outcome =
      Program(ShellLine{checkout("bench/peers/machines") + " --table " + file}).wait(60);
  EXPECT_EQ(outcome.code, 0) << outcome.err;
  EXPECT_TRUE(
      holds(outcome.out,
            {"| gloo: ring | 2.00 |\n",
             "| ringlet, overlap on, buckets of 64 KiB | 1gbit | 1,000 | 4.00 | 3.00 |  |\n"}));
  EXPECT_EQ(outcome.out.find("bcube"), std::string::npos) << outcome.out;
}

TEST_F(PeersScript, NamesAndPassesOverWhatIsAbsentOrFails) {
  pretend("bin", "ringlet",
          "[ \"$3\" = --help ] && exit 0; echo 'ringlet: error: no luck' >&2; exit 1");
  const Outcome outcome = run("--sizes 4K --rounds 2");
  EXPECT_EQ(outcome.code, 0) << outcome.err;
  EXPECT_TRUE(holds(outcome.err, {"Open MPI's program is not built",
                                  "ringlet, threads, 4K: ringlet: error: no luck; passed over"}));
  EXPECT_TRUE(holds(outcome.out, {"gloo local ring"}));
}

TEST_F(PeersScript, RefusesWhatItDoesNotKnowInALine) {
  for (const std::string flags : {"--sizes 6", "--ranks 1", "--rounds 0", "--only nccl",
                                  "--only floors", "--round 3x", "--out /no/such/folder/file"}) {
    const Outcome outcome = run(flags);
    EXPECT_EQ(outcome.code, 2) << flags;
    EXPECT_TRUE(outcome.err.starts_with("all_reduce: error: ")) << outcome.err;
    EXPECT_EQ(outcome.err.find('\n'), outcome.err.size() - 1) << outcome.err;
  }
}

}  // namespace
}  // namespace ringlet::testing
