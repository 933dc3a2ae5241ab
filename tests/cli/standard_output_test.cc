// What is printed arrives, or the exit code says that it did not: on a full disk, into a standard
// output that is closed, and into a pipe that nobody reads.
#include <csignal>

#include "tests/cli/program.h"
#include "tests/support/files.h"
#include "tests/support/pickles.h"
#include "tests/support/testdata.h"

namespace ringlet::testing {
namespace {

namespace fs = std::filesystem;

/// The command as a shell writes it.
std::string in_shell(const Arguments& arguments) {
  std::string line = built("bin/ringlet");
  for (const std::string& word : arguments) line += " '" + word + "'";
  return line;
}

Outcome shell(const std::string& line) { return Program(ShellLine{line}).wait(); }

struct Command {
  const char* name;
  Arguments line;
};

/// RUN stands for the folder of a run.
const Command kCommands[] = {
    {"Help", {"--help"}},
    {"Version", {"--version"}},
    {"HelpOfTrain", {"train", "--help"}},
    {"Configuration", {"train", "--print-config"}},
    {"Train", quick_train()},
    {"TrainInProcesses", quick_train({"--processes", "2"})},
    {"Eval", {"eval", "--checkpoint", "RUN", "--synthetic-train", "256", "--synthetic-test", "64"}},
    {"Predict", {"predict", "--checkpoint", "RUN", "--data", "synthetic", "--synthetic-test", "8"}},
    {"Export", {"export", "--checkpoint", "RUN", "--onnx", "RUN/m.onnx", "--force"}},
    {"Verify", {"verify", "--checkpoint", "RUN", "RUN/../lfw.bin"}},
    {"Convert", {"convert", "RUN/../lfw.bin", "--out", "RUN/lfw", "--force"}},
    {"Report", {"report", "RUN", "--out", "RUN/page.html", "--force"}},
    {"Compare", {"compare", "RUN", "RUN"}},
    {"Replay", {"replay", "RUN/../t.json", "--json", "RUN/replay.json", "--force"}},
    {"Inspect", {"inspect", "RUN"}},
    {"InspectJson", {"inspect", "RUN", "--json"}},
    {"BenchTrain",
     {"bench", "train", "--model", "mlp", "--synthetic-train", "64", "--steps", "1", "--warm-up",
      "1"}},
    {"BenchTrainScaling",
     {"bench", "train", "--model", "mlp", "--synthetic-train", "64", "--batch-size", "16",
      "--replicas", "1,2", "--steps", "1", "--warm-up", "1"}},
    {"BenchAllReduce",
     {"bench", "all-reduce", "--begin", "4K", "--end", "4K", "--iterations", "1"}},
    {"BenchAllGather",
     {"bench", "all-gather", "--begin", "4K", "--end", "4K", "--iterations", "1"}},
    {"BenchReduceScatter",
     {"bench", "reduce-scatter", "--begin", "4K", "--end", "4K", "--iterations", "1"}},
    {"BenchBroadcast", {"bench", "broadcast", "--begin", "4K", "--end", "4K", "--iterations", "1"}},
    {"BenchReduce", {"bench", "reduce", "--begin", "4K", "--end", "4K", "--iterations", "1"}},
    {"BenchAllToAll", {"bench", "all-to-all", "--begin", "4K", "--end", "4K", "--iterations", "1"}},
    {"BenchSendRecv", {"bench", "send-recv", "--begin", "4K", "--end", "4K", "--iterations", "1"}},
    {"Tune",
     {"tune", "--ranks", "2", "--begin", "4K", "--end", "4K", "--budget", "1ms", "--file",
      "RUN/tuned.json"}},
    {"Pipeline", {"pipeline", "--model", "lenet", "--balance", "planned"}},
    {"Simulate", {"simulate", "--alpha", "5us", "--beta", "50G"}},
    {"Devices", {"devices"}},
    {"Completion", {"completion", "bash"}},
};

class Commands : public ::testing::TestWithParam<Command> {
 protected:
  static void SetUpTestSuite() {
    folder_ = std::make_unique<TemporaryDirectory>();
    ASSERT_TRUE(succeeds(ringlet(
        quick_train({"--out", path("run"), "--replicas", "2", "--trace", path("t.json")}))));
    write_file(path("lfw.bin"), pickled_pairs({"P5\n1 1\n255\nx", "P5\n1 1\n255\ny"}, {true}));
  }
  static void TearDownTestSuite() { folder_.reset(); }
  static std::string path(const std::string& name) { return *folder_ / name; }
  static std::string line() {
    Arguments words = GetParam().line;
    for (std::string& word : words) {
      if (word.starts_with("RUN")) word.replace(0, 3, path("run"));
    }
    return in_shell(words);
  }

 private:
  static inline std::unique_ptr<TemporaryDirectory> folder_;
};

/// One line that says so. `tune` may warn before it that the machine is busy.
::testing::AssertionResult loses_its_output(Outcome outcome) {
  if (outcome.err.starts_with("ringlet: warning: the machine is busy")) {
    outcome.err.erase(0, outcome.err.find('\n') + 1);
  }
  return fails_with(3, outcome, {"standard output cannot be written", "/dev/null"});
}

TEST_P(Commands, SayThatTheDiskIsFull) {
  EXPECT_TRUE(loses_its_output(shell(line() + " > /dev/full")));
}

TEST_P(Commands, SayThatStandardOutputIsClosed) {
  EXPECT_TRUE(loses_its_output(shell(line() + " >&-")));
  EXPECT_TRUE(loses_its_output(shell(line() + " <&- >&-")));
}

TEST_P(Commands, WorkWithoutStandardInput) { EXPECT_EQ(shell(line() + " <&-").code, 0); }

TEST_P(Commands, EndInSilenceWithoutAReader) {
  const std::string gone = path("gone"), code = path("code");
  fs::remove(gone);
  const Outcome outcome = shell("{ until [ -e " + gone + " ]; do sleep 0.02; done; " + line() +
                                "; echo $? > " + code + "; } | { exec <&-; touch " + gone + "; }");
  EXPECT_EQ(read_file(code), std::to_string(128 + SIGPIPE) + "\n") << outcome.err;
  EXPECT_EQ(outcome.err.find("error"), std::string::npos) << outcome.err;
}

INSTANTIATE_TEST_SUITE_P(StandardOutput, Commands, ::testing::ValuesIn(kCommands),
                         [](const auto& command) { return std::string(command.param.name); });

/// Runs in one process and in two.
class Runs : public ::testing::TestWithParam<std::string> {
 protected:
  Arguments train(const Arguments& more) const {
    return quick_train(Arguments{"--out", folder_ / "run", "--processes", GetParam()} + more);
  }
  bool model_is_whole() const {
    const Outcome outcome = ringlet({"eval", "--checkpoint", folder_ / "run", "--synthetic-train",
                                     "256", "--synthetic-test", "64"});
    return outcome.code == 0;
  }

  TemporaryDirectory folder_;
};

TEST_P(Runs, GoOnWhereNothingCanBePrinted) {
  for (const char* where : {" > /dev/full", " <&- >&-", " <&- >&- 2>&-"}) {
    const Outcome outcome = shell(in_shell(train({"--force"})) + where);
    EXPECT_EQ(outcome.code, 3) << where << outcome.err;
    EXPECT_TRUE(model_is_whole()) << where;
    fs::remove_all(folder_ / "run");
  }
}

TEST_P(Runs, StopAndSaveWhenTheReaderGoes) {
  const std::string code = folder_ / "code";
  const Outcome outcome = shell("{ " + in_shell(train({"--epochs", "100000", "--lr", "0.001"})) +
                                "; echo $? > " + code + "; } | head -n 1");
  EXPECT_EQ(read_file(code), std::to_string(128 + SIGPIPE) + "\n") << outcome.err;
  EXPECT_TRUE(
      holds(outcome.err, {"stopped after step ", "go on with\n  ringlet train", "--resume"}));
  EXPECT_TRUE(model_is_whole()) << "of the saved state";
}

INSTANTIATE_TEST_SUITE_P(Processes, Runs, ::testing::Values("1", "2"));

}  // namespace
}  // namespace ringlet::testing
