// Signals: the first one finishes the step, saves and says how to go on; the second ends at once;
// and a run that is killed goes on from its last state.
#include <algorithm>
#include <chrono>
#include <csignal>
#include <filesystem>
#include <fstream>
#include <sstream>
#include <thread>

#include "tests/cli/program.h"
#include "tests/support/files.h"
#include "tests/support/testdata.h"

namespace ringlet::testing {
namespace {

/// Far more epochs than a test waits for.
Arguments long_train(const Arguments& more = {}) {
  return quick_train(Arguments{"--epochs", "100000", "--lr", "0.001"} + more);
}

/// The words of the line behind "go on with".
Arguments command_in(const std::string& text) {
  const auto at = text.find("go on with\n  ringlet ");
  if (at == std::string::npos) return {};
  std::istringstream line(text.substr(text.find("ringlet ", at), text.npos));
  std::string all, word;
  std::getline(line, all);
  std::istringstream words(all);
  words >> word;  // ringlet
  Arguments arguments;
  while (words >> word) arguments.push_back(word);
  return arguments;
}

/// As timeout(1) does.
void send_twice(pid_t process, int signal) {
  ::kill(process, signal);
  std::this_thread::sleep_for(std::chrono::milliseconds(1));
  ::kill(process, signal);
}

class StopSignals : public ::testing::TestWithParam<int> {};

TEST_P(StopSignals, SaveAndSayHowToGoOn) {
  const TemporaryDirectory folder;
  const std::string out = folder / "run";
  Program program(long_train({"--replicas", "2", "--out", out}));
  ASSERT_TRUE(program.wait_for("\n    1   "));  // the first epoch's row
  program.send(GetParam());
  const Outcome stopped = program.wait();
  EXPECT_EQ(stopped.code, 128 + GetParam());
  EXPECT_EQ(stopped.err, "");
  EXPECT_TRUE(holds(stopped.out, {"stopped after step "}));

  const Arguments command = command_in(stopped.out);
  ASSERT_FALSE(command.empty()) << stopped.out;
  // As it says, but the rest of the 100000 epochs is left out.
  const auto step = std::stol(stopped.out.substr(stopped.out.find("after step ") + 11));
  const Outcome resumed = ringlet(command + Arguments{"--max-steps", std::to_string(step + 2)});
  EXPECT_TRUE(succeeds(resumed));
  EXPECT_TRUE(holds(resumed.out, {"resumed   after step ", "2 replicas x 32"}));
  EXPECT_TRUE(std::filesystem::exists(folder / "run/model.safetensors"));
}

std::string name_of_signal(const ::testing::TestParamInfo<int>& signal) {
  return sigabbrev_np(signal.param);
}

INSTANTIATE_TEST_SUITE_P(Signals, StopSignals,
                         ::testing::Values(SIGINT, SIGTERM, SIGHUP, SIGUSR1, SIGUSR2, SIGXCPU),
                         name_of_signal);

/// Waits until `file` is there.
bool comes(const std::filesystem::path& file, double seconds = 60) {
  const auto end = std::chrono::steady_clock::now() + std::chrono::duration<double>(seconds);
  while (!std::filesystem::exists(file)) {
    if (std::chrono::steady_clock::now() > end) return false;
    std::this_thread::sleep_for(std::chrono::milliseconds(5));
  }
  return true;
}

/// Lines of output.
std::ptrdiff_t rows_of(const std::string& out) { return std::count(out.begin(), out.end(), '\n'); }

/// What a shell starts that ignores `signal`, as one does for what it puts into the background.
/// `environment`: settings, as `env` takes them.
ShellLine ignoring(int signal, const Arguments& arguments, const std::string& environment = "") {
  std::string line = std::string("trap '' ") + sigabbrev_np(signal) + "; exec env " + environment +
                     " " + built("bin/ringlet");
  for (const std::string& word : arguments) line += " '" + word + "'";
  return {line};
}

/// Expects the training to go on behind the signal.
void expect_to_go_on(Program& program, int signal) {
  ASSERT_TRUE(program.wait_for("\n    1   "));
  program.send(signal);
  for (const pid_t child : children_of(program.pid())) ::kill(child, signal);
  ASSERT_TRUE(program.wait_until([seen = std::ptrdiff_t{0}](const std::string& out) mutable {
    if (seen == 0) seen = rows_of(out);
    return rows_of(out) > seen + 2;
  }));
  program.send(SIGTERM);
  EXPECT_EQ(program.wait().code, 128 + SIGTERM);
}

class IgnoredSignals : public ::testing::TestWithParam<int> {};

TEST_P(IgnoredSignals, StayIgnored) {
  for (const Arguments& more : {Arguments{}, Arguments{"--processes", "2"}}) {
    Program program(ignoring(GetParam(), long_train(more)));
    expect_to_go_on(program, GetParam());
  }
}

TEST(Signals, AreIgnoredAsBeforeWhateverALibraryHasSet) {
  const auto beside = std::filesystem::read_symlink("/proc/self/exe").parent_path();
  const std::string preloaded =
      "LD_PRELOAD=" + (beside / "libringlet_handling_signals.so").string();
  Program program(
      ignoring(SIGHUP, long_train(), preloaded + " ASAN_OPTIONS=verify_asan_link_order=0"));
  expect_to_go_on(program, SIGHUP);
}

INSTANTIATE_TEST_SUITE_P(Signals, IgnoredSignals, ::testing::Values(SIGINT, SIGHUP),
                         name_of_signal);

TEST(Signals, FromTheSystemMayComeAgainAndAgain) {
  const TemporaryDirectory folder;
  Program program({"train", "--data", "synthetic", "--synthetic-train", "4000", "--synthetic-test",
                   "64", "--batch-size", "4000", "--out", folder / "run"});
  ASSERT_TRUE(program.wait_for("epoch   train loss"));
  for (int i = 0; i < 3; ++i) {  // SIGXCPU comes each second
    program.send(SIGXCPU);
    std::this_thread::sleep_for(std::chrono::milliseconds(20));
  }
  EXPECT_EQ(program.wait(60).code, 128 + SIGXCPU);
  EXPECT_TRUE(std::filesystem::exists(folder / "run/state/state.json"));
}

/// With a test of ten passes, of a second or so each.
Arguments train_with_long_test(const std::string& out, const Arguments& more = {}) {
  return Arguments{"train", "--data",  "synthetic", "--synthetic-train", "64", "--synthetic-test",
                   "2500",  "--model", "resnet20",  "--batch-size",      "64", "--epochs",
                   "2",     "--out",   out} +
         more;
}

class StoppedInTest : public ::testing::TestWithParam<Arguments> {};

TEST_P(StoppedInTest, EndsWithinAPassAndBeginsThere) {
  const TemporaryDirectory folder;
  const std::string out = folder / "run";
  for (const bool resumed : {false, true}) {
    Program program(resumed ? Arguments{"train", "--resume", out} + GetParam()
                            : train_with_long_test(out, GetParam()));
    if (resumed) {
      ASSERT_TRUE(program.wait_for("epoch   train loss"));
    } else {
      ASSERT_TRUE(comes(folder / "run/state/state.json"));
    }
    const std::vector<pid_t> children = children_of(program.pid());
    ::kill(children.empty() ? program.pid() : children.back(), SIGUSR1);  // of several, one
    const Outcome stopped = program.wait(60);
    EXPECT_EQ(stopped.code, 128 + SIGUSR1) << stopped.err;
    EXPECT_EQ(stopped.err, "");
    EXPECT_TRUE(holds(stopped.out, {"stopped after step 1;"}));
    EXPECT_NE(read_file(folder / "run/state/state.json").find("untested"), std::string::npos);
    EXPECT_EQ(read_file(folder / "run/metrics.jsonl").find("test_loss"), std::string::npos);
  }
}

INSTANTIATE_TEST_SUITE_P(Signals, StoppedInTest,
                         ::testing::Values(Arguments{}, Arguments{"--processes", "2"}));

/// Whether a process has a handler for SIGTERM.
bool catches_term(pid_t process) {
  std::ifstream status("/proc/" + std::to_string(process) + "/status");
  for (std::string line; std::getline(status, line);) {
    if (!line.starts_with("SigCgt:")) continue;
    return (std::stoull(line.substr(line.find('\t') + 1), nullptr, 16) >> (SIGTERM - 1) & 1) != 0;
  }
  return false;
}

/// Commands that take many seconds where nobody stops them, of a run in `RUN`.
class StoppedCommands : public ::testing::TestWithParam<Arguments> {};

TEST_P(StoppedCommands, EndSoonWithTheSignalsCode) {
  const TemporaryDirectory folder;
  const std::string out = folder / "run";
  ASSERT_TRUE(succeeds(ringlet({"train", "--data", "synthetic", "--synthetic-train", "64",
                                "--synthetic-test", "2500", "--model", "resnet20", "--batch-size",
                                "64", "--max-steps", "0", "--out", out})));
  Arguments command = GetParam();
  std::replace(command.begin(), command.end(), std::string("RUN"), out);
  Program program(command);
  std::vector<pid_t> children;
  const bool several = std::find(command.begin(), command.end(), "--processes") != command.end();
  const auto is_ready = [&] {
    children = several ? children_of(program.pid()) : std::vector<pid_t>{program.pid()};
    return children.size() == (several ? 2U : 1U) &&
           std::all_of(children.begin(), children.end(), catches_term);
  };
  for (int i = 0; i < 3000 && !is_ready(); ++i) {
    std::this_thread::sleep_for(std::chrono::milliseconds(10));
  }
  ASSERT_TRUE(is_ready());
  send_twice(children.back(), SIGTERM);  // of several, one
  const Outcome stopped = program.wait(60);
  EXPECT_EQ(stopped.code, 128 + SIGTERM) << stopped.err;
  EXPECT_EQ(stopped.err, "");
}

INSTANTIATE_TEST_SUITE_P(
    Signals, StoppedCommands,
    ::testing::Values(Arguments{"eval", "--checkpoint", "RUN"},
                      Arguments{"eval", "--checkpoint", "RUN", "--processes", "2"},
                      Arguments{"predict", "--checkpoint", "RUN", "--data", "synthetic",
                                "--synthetic-test", "2500"},
                      Arguments{"report", "RUN"},
                      Arguments{"bench", "train", "--model", "resnet20", "--steps", "100000"},
                      Arguments{"bench", "all-reduce", "--ranks", "2"},
                      Arguments{"bench", "all-reduce", "--processes", "--ranks", "2"}));

TEST(Signals, WithoutOutSaveNothingAndSaySo) {
  Program program(long_train());
  ASSERT_TRUE(program.wait_for("\n    1   "));
  program.send(SIGINT);
  const Outcome stopped = program.wait();
  EXPECT_EQ(stopped.code, 128 + SIGINT);
  EXPECT_TRUE(holds(stopped.out, {"nothing was saved (--no-out)"}));
}

TEST(Signals, TwiceEndAtOnce) {
  // One step is the whole epoch here: long enough to be under way when the second signal comes.
  Program program({"train", "--data", "synthetic", "--synthetic-train", "1500", "--synthetic-test",
                   "64", "--model", "resnet20", "--threads", "1", "--batch-size", "1500"});
  ASSERT_TRUE(program.wait_for("epoch   train loss"));
  program.send(SIGINT);
  std::this_thread::sleep_for(std::chrono::milliseconds(1100));  // within a second they are one
  program.send(SIGINT);
  const Outcome stopped = program.wait(5);
  EXPECT_FALSE(stopped.timed_out);
  EXPECT_EQ(stopped.signal, SIGINT);
}

// timeout(1) signals its child, and then the group that the child is in.
TEST(Signals, ThatFollowAtOnceAreOne) {
  const TemporaryDirectory folder;
  const std::string out = folder / "run";
  Program program(long_train({"--out", out}));
  ASSERT_TRUE(program.wait_for("\n    1   "));
  send_twice(program.pid(), SIGTERM);
  const Outcome stopped = program.wait();
  EXPECT_EQ(stopped.code, 128 + SIGTERM);
  EXPECT_TRUE(holds(stopped.out, {"stopped after step "}));
  EXPECT_TRUE(succeeds(ringlet({"train", "--resume", out, "--max-steps", "1"})));
}

TEST(Kill, LeavesAStateToGoOnFrom) {
  const TemporaryDirectory folder;
  const std::string out = folder / "run";
  Arguments command = long_train({"--save-every", "1", "--out", out});
  for (int round = 1; round <= 3; ++round) {
    Program program(command);
    ASSERT_TRUE(program.wait_for(" %\n")) << round;
    program.send(SIGKILL);
    EXPECT_EQ(program.wait().signal, SIGKILL);
    command = {"train", "--save-every", "1", "--resume", out};
  }
  const Outcome last = ringlet(command + Arguments{"--max-steps", "1"});
  EXPECT_TRUE(succeeds(last));
  EXPECT_TRUE(holds(last.out, {"resumed   after step "}));
}

}  // namespace
}  // namespace ringlet::testing
