// --transport mpi: what mpirun starts trains and measures over MPI; what it has not started is told
// so, as is what is wrong with MPI; a process that dies is named, soon. Over MPI and over Gloo,
// buckets are summed beside backward.
#include <fmt/format.h>

#include <algorithm>
#include <filesystem>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "base/files/json_text.h"
#include "tests/cli/program.h"
#include "tests/support/files.h"
#include "tests/support/testdata.h"

namespace ringlet::testing {
namespace {

namespace fs = std::filesystem;

/// The start of a shell line. AddressSanitizer does not look for leaks: Open MPI has some.
constexpr const char* kMpirun =
    R"(exec env TERM=dumb ASAN_OPTIONS="$ASAN_OPTIONS:detect_leaks=0" OMPI_MCA_btl=self,tcp )"
    "OMPI_MCA_btl_tcp_if_include=lo mpirun --allow-run-as-root "
    "--oversubscribe --bind-to none -n 2 ";

/// broken_mpi.cc
std::string broken_mpi() {
  return fs::read_symlink("/proc/self/exe").parent_path() / "libringlet_broken_mpi.so";
}

class Mpi : public ::testing::Test {
 protected:
  void SetUp() override {
    if (!fs::exists(built("bin/libringlet_mpi.so"))) {
      GTEST_SKIP() << "built without MPI (libopenmpi-dev)";
    }
    if (Program(ShellLine{"exec mpirun --version"}).wait(60).code != 0) {
      GTEST_SKIP() << "mpirun is not installed (openmpi-bin)";
    }
  }
  /// The shell line that starts two processes.
  static std::string mpirun(const std::vector<std::string>& arguments) {
    std::string line = std::string(kMpirun) + built("bin/ringlet");
    for (const std::string& argument : arguments) line += " '" + argument + "'";
    return line;
  }
  const TemporaryDirectory folder_;
};

/// When the spans of that name begin, or end, in the order of steps.
std::vector<double> times_in(const nlohmann::json& trace, const std::string& name, bool at_end) {
  std::vector<double> times;
  for (const nlohmann::json& event : trace.at("traceEvents")) {
    if (event.value("ph", "") != "X" || !event.at("name").get<std::string>().starts_with(name)) {
      continue;
    }
    times.push_back(event.at("ts").get<double>() + (at_end ? event.at("dur").get<double>() : 0));
  }
  std::sort(times.begin(), times.end());
  return times;
}

/// Of how many steps the first bucket is on its way before backward has come to its end.
int overlapped_steps(const fs::path& trace) {
  const auto json = parse_json(read_file(trace));
  const std::vector<double> begins = times_in(json, "bucket 0 (", false);
  const std::vector<double> ends = times_in(json, "backward conv1", true);
  EXPECT_EQ(begins.size(), ends.size());
  int steps = 0;
  for (std::size_t i = 0; i < std::min(begins.size(), ends.size()); ++i) {
    steps += begins[i] < ends[i] ? 1 : 0;
  }
  return steps;
}

constexpr int kSteps = 10;

std::vector<std::string> traced_train(const fs::path& trace, const std::string& transport,
                                      const std::string& overlap) {
  return quick_train({"--model", "lenet", "--synthetic-train", "2560", "--batch-size", "256",
                      "--max-steps", std::to_string(kSteps), "--bucket-kb", "64", "--trace", trace,
                      "--transport", transport, "--overlap", overlap});
}

TEST(OverlapBetweenProcesses, OverGlooBeginsWhileBackwardGoesOn) {
  const TemporaryDirectory folder;
  for (const char* overlap : {"on", "off"}) {
    const fs::path trace = folder / (std::string(overlap) + ".json");
    std::vector<std::string> run = traced_train(trace, "gloo", overlap);
    run.insert(run.end(), {"--processes", "2"});
    const Outcome outcome = ringlet(run);
    if (outcome.err.find("this build has not") != std::string::npos) GTEST_SKIP() << outcome.err;
    ASSERT_TRUE(succeeds(outcome));
    const int steps = overlapped_steps(trace);
    if (overlap == std::string("on")) {
      EXPECT_GE(steps, kSteps / 2);
    } else {
      EXPECT_EQ(steps, 0);
    }
  }
}

TEST_F(Mpi, BeginsASumWhileBackwardGoesOn) {
  const fs::path trace = folder_ / "trace.json";
  std::vector<std::string> run = traced_train(trace, "mpi", "on");
  run.push_back("--processes");
  const Outcome outcome = Program(ShellLine{mpirun(run)}).wait(60);
  ASSERT_EQ(outcome.code, 0) << outcome.err;
  EXPECT_GE(overlapped_steps(trace), kSteps / 2);
}

TEST_F(Mpi, TrainsToTheBytesOfThreads) {
  const fs::path threads = folder_ / "threads", processes = folder_ / "processes";
  std::vector<std::string> run = quick_train({"--exact", "--replicas", "4", "--out", threads});
  ASSERT_TRUE(succeeds(ringlet(run)));
  run = quick_train(
      {"--exact", "--replicas", "2", "--processes", "--transport", "mpi", "--out", processes});
  const Outcome outcome = Program(ShellLine{mpirun(run)}).wait(60);
  ASSERT_EQ(outcome.code, 0) << outcome.err;
  EXPECT_TRUE(holds(outcome.out, {"4 in 2 processes", "mpi, "}));  // lines are wrapped
  EXPECT_EQ(read_file(threads / "model.safetensors"), read_file(processes / "model.safetensors"));
}

TEST_F(Mpi, SumsExactlyByEveryStrategyAndItsOwn) {
  for (const char* type : {"f32", "bf16"}) {
    // Messages of one piece, of a piece and an element, and of more than is cut (mpi_transport.cc).
    const Outcome outcome =
        Program(ShellLine{mpirun({"bench", "all-reduce", "--processes", "--transport", "mpi",
                                  "--begin", "61444", "--end", "4239636", "--factor", "69", "-n",
                                  "3", "--type", type})})
            .wait(60);
    EXPECT_EQ(outcome.code, 0) << outcome.err;  // which says that nothing was wrong
    EXPECT_TRUE(holds(outcome.out,
                      {"2 ranks as processes", "mpi transport", "  ring ", "  mpi ", "  library "}))
        << type;
  }
}

TEST_F(Mpi, IsRefusedWhereMpirunHasNotStartedTheProcesses) {
  const Outcome outcome = ringlet(quick_train({"--processes", "2", "--transport", "mpi"}));
  EXPECT_EQ(outcome.code, 1) << outcome.err;
  EXPECT_TRUE(holds(outcome.err, {"--transport mpi is for processes that mpirun or srun has "
                                  "started, and these were started by --processes N; start them "
                                  "so, or use --transport gloo"}));
  const Outcome by_hand = ringlet(quick_train({"--processes", "--transport", "mpi"}),
                                  {.environment = {{"RANK", "0"},
                                                   {"WORLD_SIZE", "1"},
                                                   {"MASTER_ADDR", "127.0.0.1"},
                                                   {"MASTER_PORT", "29511"}}});
  EXPECT_EQ(by_hand.code, 1) << by_hand.err;
  EXPECT_TRUE(holds(by_hand.err, {"these were started by torchrun, or by hand; start them so"}));
}

/// What two processes say that have `before` in front of their command, such as variables.
std::string refusal(const std::string& before, const std::string& program = built("bin/ringlet")) {
  std::string line = kMpirun + before + " " + program;
  for (const std::string& argument : quick_train({"--processes", "--transport", "mpi"})) {
    line += " '" + argument + "'";
  }
  const Outcome outcome = Program(ShellLine{line}).wait(60);
  EXPECT_NE(outcome.code, 0);
  return outcome.out + outcome.err;
}

TEST_F(Mpi, SaysWhatMpiLacks) {
  EXPECT_TRUE(holds(refusal("env LD_PRELOAD=" + broken_mpi() +
                            " BROKEN_MPI_THREADS=0 "
                            "ASAN_OPTIONS=verify_asan_link_order=0:detect_leaks=0"),
                    {"MPI cannot begin in process ",
                     "it has no MPI_THREAD_MULTIPLE; use "
                     "--transport gloo"}));
}

TEST_F(Mpi, SaysThatItNumbersTheProcessesOtherwise) {
  const std::string swap =
      "sh -c 'other=$((1 - OMPI_COMM_WORLD_RANK)); "
      "exec env OMPI_COMM_WORLD_RANK=$other OMPI_COMM_WORLD_LOCAL_RANK=$other \"$@\"' .";
  EXPECT_TRUE(holds(refusal(swap), {" of 2, and Open MPI says number ",
                                    "; start all by one mpirun, or by srun --mpi=pmix"}));
}

TEST_F(Mpi, SaysWhatIsWrongWithItsModule) {
  const fs::path program = folder_ / "ringlet", module = folder_ / "libringlet_mpi.so";
  fs::copy_file(built("bin/ringlet"), program);
  EXPECT_TRUE(holds(refusal("", program), {"--transport mpi cannot open MPI: libringlet_mpi.so: ",
                                           "; install libopenmpi-dev and build anew"}));
  fs::copy_file(broken_mpi(), module);
  EXPECT_TRUE(
      holds(refusal("", program),
            {module.string() + " is of another version of Ringlet; install libopenmpi-dev "}));
}

/// What the survivor says of a process that is killed once the first epoch is over, and how many
/// seconds later it ends. `before` stands in front of its command.
struct Death {
  std::string words;
  double seconds = 0;
};
Death kill_one(int victim, const fs::path& folder, const std::string& before = "") {
  const fs::path script = folder / "start", out = folder / "out";
  fs::create_directory(folder);
  write_file(out, "");
  write_file(script, fmt::format(R"(
out='{}'
if [ "$OMPI_COMM_WORLD_RANK" = {} ]; then
  (until grep -q '^ *1 ' "$out"; do sleep 0.05; done
   touch "$out.stuck"; sleep 0.3; date +%s.%N >"$out.begin"; kill -9 $$) &
  exec "$@" >>"$out" 2>>"$out.err"
fi
{} "$@" >>"$out" 2>>"$out.err"  # mpirun may drop what is said while it ends the others
date +%s.%N >"$out.end"
)",
                                 out.string(), victim, before));
  const std::string line =
      std::string(kMpirun) + "--enable-recovery sh '" + script.string() + "' " +
      built("bin/ringlet") +
      " train --data synthetic --synthetic-train 640 --model mlp --batch-size 64 --epochs 100000 "
      "--lr 0.001 --no-out --processes --transport mpi";
  // mpirun would end the others itself, often before they can speak; and then it ends with 0.
  const Outcome outcome = Program(ShellLine{line}).wait(60);
  const auto time = [&](const char* end) {
    return fs::exists(out.string() + end) ? std::stod(read_file(out.string() + end)) : 0.0;
  };
  return {read_file(out.string() + ".err") + outcome.err, time(".end") - time(".begin")};
}

/// A process that has died is named at once, and a call of MPI that holds a thread is not waited
/// for: that took ten seconds. The rest is for a busy machine.
constexpr double kSoon = 5;

TEST_F(Mpi, NamesTheProcessThatDies) {
  for (const int victim : {0, 1}) {
    const Death death = kill_one(victim, folder_ / std::to_string(victim));
    EXPECT_TRUE(holds(death.words, {fmt::format("process {} (pid ", victim)}));
    EXPECT_LT(death.seconds, kSoon);
    EXPECT_GT(death.seconds, 0);
  }
}

TEST_F(Mpi, DoesNotWaitForACallThatNeverReturns) {
  const fs::path file = folder_ / "stuck" / "out.stuck";
  const Death death =
      kill_one(1, folder_ / "stuck",
               "LD_PRELOAD=" + broken_mpi() + " BROKEN_MPI_STUCK='" + file.string() +
                   "' ASAN_OPTIONS=verify_asan_link_order=0:detect_leaks=0");
  EXPECT_TRUE(holds(death.words,
                    {"process 1 (pid ", " died; ", " s later still not ended: replica 0 (cpu:0)"}));
  EXPECT_LT(death.seconds, kSoon);
  EXPECT_GT(death.seconds, 0);
}

}  // namespace
}  // namespace ringlet::testing
