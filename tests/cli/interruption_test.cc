// Signals: the first one finishes the step, saves and says how to go on; the second ends at once;
// and a run that is killed goes on from its last state.
#include <chrono>
#include <csignal>
#include <sstream>
#include <thread>

#include "tests/cli/program.h"
#include "tests/support/files.h"

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

INSTANTIATE_TEST_SUITE_P(Signals, StopSignals, ::testing::Values(SIGINT, SIGTERM),
                         [](const auto& sig) { return sig.param == SIGINT ? "INT" : "TERM"; });

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
  Program program({"train", "--data", "synthetic", "--synthetic-train", "40000", "--synthetic-test",
                   "64", "--batch-size", "40000"});
  ASSERT_TRUE(program.wait_for("epoch   train loss"));
  program.send(SIGINT);
  std::this_thread::sleep_for(std::chrono::milliseconds(200));  // two at once would be one
  program.send(SIGINT);
  const Outcome stopped = program.wait(5);
  EXPECT_FALSE(stopped.timed_out);
  EXPECT_EQ(stopped.signal, SIGINT);
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
