// Ranks in several processes: started by --processes N, by hand, by torchrun and by mpirun. They
// learn what one process learns, and end together, whoever is killed or interrupted.
#include <unistd.h>

#include <array>
#include <chrono>
#include <csignal>
#include <filesystem>
#include <fstream>
#include <nlohmann/json.hpp>
#include <optional>
#include <sstream>
#include <thread>
#include <tuple>

#include "base/files/json_text.h"
#include "comm/processes/message_socket.h"
#include "comm/transport/gloo/gloo_transport.h"
#include "tests/cli/program.h"
#include "tests/support/files.h"
#include "tests/support/testdata.h"

namespace ringlet::testing {
namespace {

using std::chrono::duration;
using std::chrono::milliseconds;
using std::chrono::steady_clock;

bool is_running(pid_t pid) {
  std::ifstream file("/proc/" + std::to_string(pid) + "/stat");
  std::string stat;
  if (!std::getline(file, stat)) return false;
  return stat.substr(stat.rfind(')') + 2, 1) != "Z";  // its parent has yet to ask for its code
}

::testing::AssertionResult all_end(const std::vector<pid_t>& pids) {
  const auto begin = steady_clock::now();
  for (const pid_t pid : pids) {
    while (is_running(pid)) {
      if (duration<double>(steady_clock::now() - begin).count() > 5) {
        return ::testing::AssertionFailure() << "process " << pid << " still runs";
      }
      std::this_thread::sleep_for(milliseconds(10));
    }
  }
  return ::testing::AssertionSuccess();
}

/// Far more epochs than a test waits for.
Arguments long_train(const Arguments& more) {
  return quick_train(Arguments{"--epochs", "100000", "--lr", "0.001"} + more);
}

std::map<std::string, std::string> by_hand(int rank, int size) {
  return {{"RANK", std::to_string(rank)},
          {"WORLD_SIZE", std::to_string(size)},
          {"MASTER_ADDR", "127.0.0.1"},
          {"MASTER_PORT", "test-" + std::to_string(::getpid())}};
}

std::vector<double> losses_in(const std::filesystem::path& metrics) {
  std::istringstream text(read_file(metrics));
  std::vector<double> losses;
  for (std::string line; std::getline(text, line);) {
    const auto json = parse_json(line);
    if (json.contains("loss")) losses.push_back(json.at("loss"));
  }
  return losses;
}

TEST(ProcessesRun, LearnsWhatThreadsLearnAndSpeaksOnce) {
  const TemporaryDirectory folder;
  for (const auto& [sync, transport] : {std::pair<std::string, std::string>{"ring", "shm"},
                                        {"naive", comm::has_gloo() ? "gloo" : "shm"}}) {
    const std::string threads = folder / ("threads-" + sync), processes = folder / (sync + ".json");
    ASSERT_TRUE(
        succeeds(ringlet(quick_train({"--replicas", "4", "--sync", sync, "--metrics", threads}))));
    const Outcome outcome =
        ringlet(quick_train({"--processes", "2", "--replicas", "2", "--sync", sync, "--transport",
                             transport, "--metrics", processes}));
    ASSERT_TRUE(succeeds(outcome));
    EXPECT_TRUE(holds(outcome.out,
                      {"4 in 2 processes on cpu:0", "4 replicas x 16", "transport " + transport}));
    EXPECT_EQ(outcome.out.find("epoch   train"), outcome.out.rfind("epoch   train"));
    EXPECT_EQ(losses_in(processes).size(), 4U);
    EXPECT_EQ(losses_in(processes), losses_in(threads)) << sync;
  }
}

TEST(ProcessesRun, DealsOutTheStagesOfAModel) {
  const TemporaryDirectory folder;
  const auto model_of = [&](const char* name, const Arguments& flags) {
    const std::string out = folder / name;
    const Outcome outcome =
        ringlet(quick_train(Arguments{"--replicas", "2", "--micro-batches", "2", "--sync", "naive",
                                      "--out", out, "--layout", "nchw"} +
                            flags));
    EXPECT_TRUE(succeeds(outcome));
    return read_file(out + "/model.safetensors");
  };
  const std::string whole = model_of("whole", {});
  EXPECT_GT(whole.size(), 1000U);
  EXPECT_EQ(model_of("threads", {"--stages", "2"}), whole);
  EXPECT_EQ(model_of("pairs", {"--stages", "2", "--processes", "2"}), whole);
  EXPECT_EQ(model_of("apart", {"--stages", "flatten..relu1,fc2..fc3", "--processes", "4"}), whole);
}

// What is unlike here decides which exchanges come before all settings are compared.
TEST(ProcessesRun, NamesAtOnceWhatWasStartedOtherwise) {
  const TemporaryDirectory folder;
  const std::string run = folder / "run";
  ASSERT_TRUE(succeeds(ringlet(quick_train({"--save-every", "1", "--out", run}))));
  const struct {
    Arguments more;  // of process 1
    std::string name;
  } cases[] = {{{"--resume", "auto"}, "--resume"},
               {{"--init", run}, "--init"},
               {{"--precision", "auto"}, "--precision"},
               {{"--stages", "2"}, "--stages"},
               {{"--stages", "1", "--micro-batches", "2"}, "--micro-batches"}};
  const auto expect_named = [](const Arguments& own, const Arguments& others,
                               const std::string& name) {
    const Arguments common{"--comm-timeout", "30"};
    Program first(own + common, {.environment = by_hand(0, 2)});
    Program second(others + common, {.environment = by_hand(1, 2)});
    const std::string told = first.wait().err + second.wait().err;
    EXPECT_TRUE(holds(told, {"the processes do not agree on " + name + ": process 0 has "}))
        << name;
    EXPECT_EQ(told.find("waited"), std::string::npos) << told;
  };
  const Arguments train = quick_train({"--processes", "--out", folder / "out"});
  for (const auto& [more, name] : cases) expect_named(train, train + more, name);
  expect_named(train, {"eval", "--checkpoint", run, "--processes"}, "the command");
}

TEST(ProcessesRun, NamesTheFlagOfALaterDifference) {
  for (const auto& [more, name] :
       {std::pair<Arguments, std::string>{{"--label-smoothing", "0.1"}, "\"--label-smoothing\""},
        {{"--bucket-kb", "1"}, "(--bucket-kb, --first-bucket-kb)\""}}) {
    const Arguments train = quick_train({"--processes", "--comm-timeout", "30", "--no-out"});
    Program first(train, {.environment = by_hand(0, 2)});
    Program second(train + more, {.environment = by_hand(1, 2)});
    const std::string told = first.wait().err + second.wait().err;
    EXPECT_TRUE(holds(told, {"the ranks' plans differ in ", name + ": rank 0 has "})) << told;
  }
}

TEST(ProcessesRun, IsExactForAnySplit) {
  const TemporaryDirectory folder;
  std::string expected;
  for (const auto& [processes, replicas] :
       {std::pair{"1", "4"}, std::pair{"2", "2"}, std::pair{"4", "1"}}) {
    const std::string out = folder / (std::string("p") + processes);
    ASSERT_TRUE(succeeds(ringlet(
        quick_train({"--exact", "--processes", processes, "--replicas", replicas, "--out", out}))));
    const std::string model = read_file(out + "/model.safetensors");
    if (expected.empty()) expected = model;
    EXPECT_GT(model.size(), 1000U);
    EXPECT_EQ(model, expected) << processes << " x " << replicas;
  }
  const Arguments eval{"eval",      "--model",           "mlp",        "--data",
                       "synthetic", "--synthetic-train", "256",        "--synthetic-test",
                       "64",        "--checkpoint",      folder / "p1"};
  const Outcome alone = ringlet(eval);
  ASSERT_TRUE(succeeds(alone));
  EXPECT_EQ(ringlet(eval + Arguments{"--processes", "3"}).out, alone.out);
}

TEST(ProcessesRun, WarnsWhereProcessorsThatAreUnlikeBreakExactMode) {
  auto portable = by_hand(1, 2);
  portable["RINGLET_ISA"] = "portable";
  for (const bool exact : {true, false}) {
    const Arguments line =
        quick_train(exact ? Arguments{"--processes", "--exact"} : Arguments{"--processes"});
    Program second(line, {.environment = portable});
    const Outcome first = ringlet(line, {.environment = by_hand(0, 2)});
    EXPECT_EQ(first.code, 0);
    EXPECT_EQ(second.wait().err, "");
    if (!exact || first.out.find("portable") != std::string::npos) {  // of this machine's processor
      EXPECT_EQ(first.err, "");
      continue;
    }
    EXPECT_TRUE(holds(first.err, {"ringlet: warning: --exact: this run's bytes",
                                  "process 1 computes with portable", "set RINGLET_ISA=portable"}));
  }
}

TEST(ProcessesRun, WarnsWhereAnExactRunGoesOnOnAnotherProcessor) {
  const TemporaryDirectory folder;
  const std::string out = folder / "run";
  const Outcome begun = ringlet(quick_train({"--exact", "--max-steps", "2", "--out", out}));
  ASSERT_TRUE(succeeds(begun));
  const bool is_portable = begun.out.find("portable") != std::string::npos;
  const Outcome on =
      ringlet({"train", "--resume", out}, {.environment = {{"RINGLET_ISA", "portable"}}});
  EXPECT_EQ(on.code, 0);
  if (is_portable) {
    EXPECT_EQ(on.err, "");
  } else {
    EXPECT_TRUE(holds(on.err, {"ringlet: warning: --exact: ", "goes on with portable"}));
  }
}

TEST(ProcessesRun, TakesItsPositionByHandAndTracesEveryProcess) {
  const TemporaryDirectory folder;
  const Arguments line = quick_train({"--processes", "--trace", folder / "trace.json"});
  Program second(line, {.environment = by_hand(1, 2)});
  const Outcome first = ringlet(line, {.environment = by_hand(0, 2)});
  EXPECT_TRUE(succeeds(first));
  EXPECT_TRUE(holds(first.out, {"2 in 2 processes", "\n    1   "}));
  const Outcome other = second.wait();
  EXPECT_TRUE(succeeds(other));
  EXPECT_EQ(other.out, "");
  EXPECT_TRUE(holds(read_file(folder / "trace.json"), {"\"rank 0\"", "\"peer\":1"}));
  EXPECT_TRUE(holds(read_file(folder / "trace.p1.json"), {"\"rank 1\"", "\"peer\":0"}));
}

TEST(ProcessesRun, MayBeTheOnlyOneOfALauncher) {
  for (const char* replicas : {"1", "2"}) {
    EXPECT_TRUE(succeeds(ringlet(quick_train({"--processes", "--replicas", replicas}),
                                 {.environment = by_hand(0, 1)})));
  }
}

TEST(ProcessesRun, WarnsOnceWhereALauncherStartsManyAndNobodyAsksForProcesses) {
  for (const int rank : {0, 1}) {
    const Outcome outcome = ringlet(quick_train({}), {.environment = by_hand(rank, 2)});
    EXPECT_EQ(outcome.code, 0);
    EXPECT_EQ(outcome.err,
              rank > 0 ? ""
                       : "ringlet: warning: torchrun has started 2 processes (WORLD_SIZE), and "
                         "without --processes each of them does all the work for itself; add "
                         "--processes, and they share it\n");
  }
}

TEST(ProcessesRun, SaysWhatIsWrongWithTheEnvironment) {
  EXPECT_TRUE(fails_with(2, ringlet(quick_train({"--processes"})),
                         {"--processes without a number", "torchrun", "--processes N"}));
  auto half = by_hand(0, 2);
  half.erase("WORLD_SIZE");
  EXPECT_TRUE(fails_with(2, ringlet(quick_train({"--processes"}), {.environment = half}),
                         {"RANK is set but WORLD_SIZE is not"}));
  auto machines = by_hand(0, 2);
  machines["LOCAL_WORLD_SIZE"] = "1";
  EXPECT_TRUE(fails_with(2, ringlet(quick_train({"--processes"}), {.environment = machines}),
                         {"MASTER_PORT is 'test-", "which is no port from 1 to 65535"}));
  EXPECT_TRUE(fails_with(2,
                         ringlet(quick_train({"--processes", "2"}), {.environment = by_hand(0, 2)}),
                         {"--processes 2 would start 2 in each of torchrun's 2 processes"}));
  EXPECT_TRUE(fails_with(1,
                         ringlet(quick_train({"--processes", "--comm-timeout", "0.3"}),
                                 {.environment = by_hand(0, 3)}),
                         {"processes 1 and 2 never came"}));
}

TEST(ProcessesRun, TellsABadRunOnceWithItsCode) {
  EXPECT_TRUE(fails_with(2, ringlet(quick_train({"--processes", "3", "--exact"})),
                         {"needs a power of two"}));
  EXPECT_TRUE(fails_with(1, ringlet(quick_train({"--processes", "2", "--init", "nowhere.st"})),
                         {"nowhere.st"}));
}

/// The program with two processes, in its training.
class KilledRun : public ::testing::TestWithParam<int> {};

TEST_P(KilledRun, NamesTheVictimAndLeavesNobody) {
  const std::string other = comm::has_gloo() ? "gloo" : "shm";
  for (const auto& [milliseconds_of_training, transport] :
       {std::pair<int, std::string>{0, "shm"}, {40, other}, {150, "shm"}}) {
    Program program(long_train({"--processes", "3", "--replicas", "2", "--transport", transport}));
    ASSERT_TRUE(program.wait_for("epoch   train loss"));
    std::this_thread::sleep_for(milliseconds(milliseconds_of_training));
    const std::vector<pid_t> children = children_of(program.pid());
    ASSERT_EQ(children.size(), 3U);
    const auto victim = static_cast<std::size_t>(GetParam());
    ::kill(children[victim], SIGKILL);
    const Outcome outcome = program.wait(10);
    EXPECT_TRUE(fails_with(1, outcome,
                           {"process " + std::to_string(victim) + " (pid " +
                            std::to_string(children[victim]) + ", ranks "}));
    EXPECT_TRUE(all_end(children));
  }
}

INSTANTIATE_TEST_SUITE_P(Victims, KilledRun, ::testing::Values(0, 1, 2));

double seconds_since(steady_clock::time_point begin) {
  return duration<double>(steady_clock::now() - begin).count();
}

/// The three processes of `program`, as soon as they are there.
std::vector<pid_t> three_children_of(const Program& program) {
  const auto begin = steady_clock::now();
  std::vector<pid_t> children;
  while (children.size() < 3 && seconds_since(begin) < 10) children = children_of(program.pid());
  return children;
}

class FirstMoments : public ::testing::TestWithParam<int> {};

TEST_P(FirstMoments, AreNoWorseToDieIn) {
  for (const int after : {0, 5, 15, 30, 50, 80}) {
    Program program(long_train({"--processes", "3"}));
    const std::vector<pid_t> children = three_children_of(program);
    ASSERT_EQ(children.size(), 3U);
    std::this_thread::sleep_for(milliseconds(after));
    const auto victim = static_cast<std::size_t>(GetParam());
    const auto begin = steady_clock::now();
    ::kill(children[victim], SIGKILL);
    EXPECT_TRUE(fails_with(
        1, program.wait(),
        {"process " + std::to_string(victim) + " (pid " + std::to_string(children[victim])}))
        << after;
    EXPECT_LT(seconds_since(begin), 5) << after;  // on a busy machine too
    EXPECT_TRUE(all_end(children));
  }
}

INSTANTIATE_TEST_SUITE_P(Victims, FirstMoments, ::testing::Values(0, 1, 2));

class StoppedRun : public ::testing::TestWithParam<int> {};

TEST_P(StoppedRun, EndsSoonAfterItsTimeOut) {
  Program program(long_train({"--processes", "3", "--comm-timeout", "2", "--check-replicas", "1"}));
  ASSERT_TRUE(program.wait_for("epoch   train loss"));
  const std::vector<pid_t> children = children_of(program.pid());
  ASSERT_EQ(children.size(), 3U);
  const auto begin = steady_clock::now();
  ::kill(children[static_cast<std::size_t>(GetParam())], SIGSTOP);
  const Outcome outcome = program.wait();
  EXPECT_TRUE(fails_with(1, outcome, {"process is stopped or hangs: see ps"}));
  EXPECT_TRUE(outcome.err.starts_with("ringlet: error: rank " + std::to_string(GetParam()) + " "));
  EXPECT_EQ(outcome.err.find("circle"), std::string::npos);
  EXPECT_EQ(outcome.err.find("never entered"), std::string::npos);
  EXPECT_LT(seconds_since(begin), 10);
  EXPECT_TRUE(all_end(children));
}

INSTANTIATE_TEST_SUITE_P(Victims, StoppedRun, ::testing::Values(0, 1, 2));

TEST_P(StoppedRun, HearsThatItIsToEnd) {
  Program program(long_train({"--processes", "3"}));
  ASSERT_TRUE(program.wait_for("epoch   train loss"));
  const std::vector<pid_t> children = children_of(program.pid());
  ASSERT_EQ(children.size(), 3U);
  const auto begin = steady_clock::now();
  ::kill(children[static_cast<std::size_t>(GetParam())], SIGSTOP);
  program.send(SIGTERM);
  const Outcome outcome = program.wait();
  EXPECT_EQ(outcome.code, 128 + SIGTERM) << outcome.err;
  EXPECT_EQ(outcome.err, "");
  EXPECT_LT(seconds_since(begin), 10);
  EXPECT_TRUE(all_end(children));
}

/// Two stages of lenet, one in each of two processes. The number is the one that ends.
class StagedRun : public ::testing::TestWithParam<int> {
 protected:
  static Arguments staged_train(const std::string& replicas, const Arguments& more = {}) {
    return long_train(Arguments{"--model", "lenet", "--stages", "conv1..pool1,conv2..fc2",
                                "--processes", "2", "--replicas", replicas} +
                      more);
  }
  /// What the process has.
  static std::string name_of(int process, int replicas) {
    const std::string layers = process == 0 ? "stage 0 (conv1 .. pool1)" : "stage 1 (conv2 .. fc2)";
    const int first = process * replicas;
    if (replicas == 1) return layers + ", replica 0, rank " + std::to_string(first);
    return layers + ", replicas 0 and 1, ranks " + std::to_string(first) + " and " +
           std::to_string(first + 1);
  }
  /// The two processes, which train.
  static std::vector<pid_t> children_in_training(Program& program) {
    EXPECT_TRUE(program.wait_for("\n    1 "));
    std::vector<pid_t> children = children_of(program.pid());
    EXPECT_EQ(children.size(), 2U);
    return children;
  }
};

TEST_P(StagedRun, NamesTheStageOfAProcessThatIsKilled) {
  for (const int replicas : {1, 2}) {
    Program program(staged_train(std::to_string(replicas)));
    const std::vector<pid_t> children = children_in_training(program);
    const pid_t victim = children.at(static_cast<std::size_t>(GetParam()));
    ::kill(victim, SIGKILL);
    EXPECT_TRUE(
        fails_with(1, program.wait(10),
                   {"process " + std::to_string(GetParam()) + " (pid " + std::to_string(victim) +
                    ", " + name_of(GetParam(), replicas) + ") died; "}));
    EXPECT_TRUE(all_end(children));
  }
}

TEST_P(StagedRun, NamesTheStageOfAProcessThatIsStopped) {
  for (const int replicas : {1, 2}) {
    Program program(staged_train(std::to_string(replicas), {"--comm-timeout", "2"}));
    const std::vector<pid_t> children = children_in_training(program);
    ::kill(children.at(static_cast<std::size_t>(GetParam())), SIGSTOP);
    // Whoever waits first, along whatever axis.
    EXPECT_TRUE(fails_with(1, program.wait(),
                           {name_of(GetParam(), replicas) + " (process " +
                            std::to_string(GetParam()) + ") " + (replicas == 1 ? "does" : "do") +
                            " not answer, so its process is stopped or hangs: see ps"}));
    EXPECT_TRUE(all_end(children));
  }
}

/// Whom nobody outlives, names who has started them.
TEST_P(StagedRun, LosesBothAndTheirParentNamesAStage) {
  Program program(staged_train("2"));
  const std::vector<pid_t> children = children_in_training(program);
  const pid_t first = children.at(static_cast<std::size_t>(GetParam()));
  for (const pid_t child : children) ::kill(child, SIGSTOP);
  ::kill(first, SIGKILL);
  EXPECT_TRUE(
      fails_with(1, program.wait(30),
                 {"process " + std::to_string(GetParam()) + " (pid " + std::to_string(first) +
                  ", " + name_of(GetParam(), 2) + ") was ended by signal 9 (Killed); "}));
  EXPECT_TRUE(all_end(children));
}

INSTANTIATE_TEST_SUITE_P(Victims, StagedRun, ::testing::Values(0, 1));

TEST(ProcessesRun, StoppedBeforeAllHaveComeIsMissed) {
  Program program(long_train({"--processes", "3", "--comm-timeout", "2"}));
  const std::vector<pid_t> children = three_children_of(program);
  ASSERT_EQ(children.size(), 3U);
  const auto begin = steady_clock::now();
  ::kill(children[1], SIGSTOP);
  // "process 1 never came", or "rank 1 ..." where it had.
  EXPECT_TRUE(fails_with(1, program.wait(), {" 1 "}));
  EXPECT_LT(seconds_since(begin), 10);
}

TEST(ProcessesRun, TellOnceThatDescriptorsAreUsedUp) {
  for (const int descriptors : {6, 7}) {
    std::string line =
        "ulimit -n " + std::to_string(descriptors) + "; exec " + built("bin/ringlet");
    for (const std::string& word : quick_train({"--processes", "3"})) line += " " + word;
    const auto begin = steady_clock::now();
    EXPECT_TRUE(fails_with(1, Program(ShellLine{line}).wait(), {"Too many open files", "ulimit"}));
    EXPECT_LT(seconds_since(begin), 10) << descriptors;
  }
}

/// Whether a process has opened a socket.
bool has_socket(pid_t process) {
  std::error_code gone;
  for (const auto& file :
       std::filesystem::directory_iterator("/proc/" + std::to_string(process) + "/fd", gone)) {
    std::error_code closed;
    if (std::filesystem::read_symlink(file, closed).string().starts_with("socket:")) return true;
  }
  return false;
}

TEST(ProcessesRun, KilledBeforeAllHaveComeNamesTheVictim) {
  Program second(quick_train({"--processes"}), {.environment = by_hand(1, 3)});
  Program first(quick_train({"--processes"}), {.environment = by_hand(0, 3)});
  for (int i = 0; i < 1000 && !has_socket(second.pid()); ++i) {
    std::this_thread::sleep_for(milliseconds(10));
  }
  std::this_thread::sleep_for(milliseconds(300));  // for the two to come together
  second.send(SIGKILL);
  EXPECT_TRUE(fails_with(1, first.wait(10), {"process 1 (pid "}));
  EXPECT_EQ(second.wait().signal, SIGKILL);
}

/// Of two processes that are started by hand: one waits for the other, which then cannot begin.
struct Failure {
  Outcome waiting, failed;
};

Failure fail_before_meeting(int failing, const Arguments& line, const Arguments& wrong) {
  auto listener = std::optional(comm::MessageSocket::listen(comm::TcpAddress{"127.0.0.1", 0}));
  const comm::TcpAddress address = listener->own_address();
  const auto environment_of = [&address](int rank) {
    auto environment = by_hand(rank, 2);
    environment["RINGLET_HUB"] = "127.0.0.1:" + std::to_string(address.port);
    return environment;
  };
  if (failing != 0) listener.reset();
  Program waiting(line, {.environment = environment_of(1 - failing)});
  const auto waits = [&] {
    if (listener) return listener->accept().open();  // it has asked for process 0
    std::string failure;
    return comm::MessageSocket::connect(address, milliseconds(1000), failure).open();
  };
  for (int i = 0; i < 1000 && !waits(); ++i) std::this_thread::sleep_for(milliseconds(10));
  listener.reset();
  const Outcome failed = ringlet(line + wrong, {.environment = environment_of(failing)});
  return {waiting.wait(20), failed};
}

TEST(ProcessesRun, OneThatFailsBeforeItHasMetTheOthersTellsThem) {
  const TemporaryDirectory folder;
  const Arguments train = quick_train({"--processes"});
  const Arguments bench{"bench", "all-reduce", "--processes"};
  for (const auto& [line, wrong, code, text] :
       {std::tuple<Arguments, Arguments, int, std::string>{
            train, {"--config", "nowhere.toml"}, 2, "nowhere.toml cannot be read"},
        {train, {"--out", ""}, 2, "--out"},
        {train, {"--transport", "local"}, 2, "--transport local"},
        {bench, {"--with", folder / "nowhere.json"}, 1, "nowhere.json"}}) {
    for (const int failing : {0, 1}) {
      if (failing == 1 && line == bench) continue;  // process 0 alone reads that file
      const Failure failure = fail_before_meeting(failing, line, wrong);
      EXPECT_TRUE(fails_with(code, failure.failed, {text})) << failing;
      EXPECT_FALSE(failure.waiting.timed_out) << failing << " " << text;
      EXPECT_EQ(failure.waiting.code, 1);
      if (failing == 0) {
        EXPECT_EQ(failure.waiting.err, "");
      } else {
        EXPECT_TRUE(fails_with(1, failure.waiting, {"process 1 on ", " cannot begin: ", text}));
      }
    }
  }
}

/// Each process writes its own on its own disk, which the first one need not see.
TEST(ProcessesRun, ReplacesNoProcesssTraceUnasked) {
  const TemporaryDirectory first, second;
  const std::string kept = second / "t.p1.json";
  write_file(kept, "kept");
  const Arguments bench{"bench",  "all-reduce",   "--processes", "-b", "8", "-e",
                        "8",      "-n",           "2",           "-w", "1", "--trace",
                        "t.json", "--strategies", "ring"};
  for (const Arguments& line : {quick_train({"--processes", "--trace", "t.json"}), bench}) {
    Program other(line, {.environment = by_hand(1, 2), .folder = second.path()});
    const Outcome outcome = ringlet(line, {.environment = by_hand(0, 2), .folder = first.path()});
    EXPECT_TRUE(fails_with(2, other.wait(), {"t.p1.json is there already", "--force"}));
    EXPECT_NE(outcome.code, 0);
    EXPECT_EQ(read_file(kept), "kept");
  }
}

TEST(ProcessesRun, DieWithTheirParent) {
  Program program(long_train({"--processes", "2"}));
  ASSERT_TRUE(program.wait_for("epoch   train loss"));
  const std::vector<pid_t> children = children_of(program.pid());
  ASSERT_EQ(children.size(), 2U);
  program.send(SIGKILL);
  EXPECT_EQ(program.wait(10).signal, SIGKILL);
  EXPECT_TRUE(all_end(children));
}

enum class Interrupted { parent, first, second, everybody };

std::string name_of(Interrupted whom) {
  const std::array<const char*, 4> names{"parent", "first", "second", "everybody"};
  return names[static_cast<std::size_t>(whom)];
}

class InterruptedRun : public ::testing::TestWithParam<Interrupted> {};

TEST_P(InterruptedRun, SavesAndSaysHowToGoOn) {
  const TemporaryDirectory folder;
  const std::string out = folder / "run";
  Program program(long_train({"--processes", "2", "--replicas", "2", "--out", out}));
  ASSERT_TRUE(program.wait_for("\n    1   "));
  const std::vector<pid_t> children = children_of(program.pid());
  ASSERT_EQ(children.size(), 2U);
  const bool everybody = GetParam() == Interrupted::everybody;
  if (everybody || GetParam() == Interrupted::first) ::kill(children[0], SIGINT);
  if (everybody || GetParam() == Interrupted::second) ::kill(children[1], SIGINT);
  if (everybody || GetParam() == Interrupted::parent) program.send(SIGINT);
  const Outcome stopped = program.wait(10);
  EXPECT_EQ(stopped.code, 128 + SIGINT);
  EXPECT_EQ(stopped.err, "");
  EXPECT_TRUE(holds(stopped.out, {"stopped after step ", "go on with\n  ringlet train ",
                                  "--processes 2", "--resume " + out}));
  EXPECT_TRUE(all_end(children));
  const auto step = std::stol(stopped.out.substr(stopped.out.find("after step ") + 11));
  const Outcome resumed = ringlet({"train", "--synthetic-train", "256", "--synthetic-test", "64",
                                   "--resume", out, "--max-steps", std::to_string(step + 2)});
  EXPECT_TRUE(succeeds(resumed));
  EXPECT_TRUE(holds(resumed.out, {"resumed   after step "}));
}

INSTANTIATE_TEST_SUITE_P(Whom, InterruptedRun,
                         ::testing::Values(Interrupted::parent, Interrupted::first,
                                           Interrupted::second, Interrupted::everybody),
                         [](const auto& whom) { return name_of(whom.param); });

/// What a launcher does, as a shell's command.
class Launchers : public ::testing::Test {
 protected:
  /// Two stages of two replicas, as threads, then by two processes, which run() starts with these
  /// flags: each has a stage. Both write the same bytes.
  template <class Run>
  static void expect_bytes_of_threads(const Run& run) {
    const TemporaryDirectory folder;
    const auto line = [&folder](const char* out) {
      return quick_train({"--stages", "flatten..relu1,fc2..fc3", "--replicas", "2",
                          "--micro-batches", "2", "--out", folder / out});
    };
    ASSERT_TRUE(succeeds(ringlet(line("threads"))));
    const Outcome outcome = run(line("launched") + Arguments{"--processes"});
    EXPECT_EQ(outcome.code, 0) << outcome.err;
    EXPECT_TRUE(
        holds(outcome.out, {"2 in 2 processes", "fc2 .. fc3        process 1", "\n    1   "}));
    EXPECT_EQ(read_file(folder / "launched/model.safetensors"),
              read_file(folder / "threads/model.safetensors"));
  }
  static Outcome launch(const std::string& with, const Arguments& arguments) {
    std::string line = "exec " + with + " " + built("bin/ringlet");
    for (const std::string& argument : arguments) line += " '" + argument + "'";
    return Program(ShellLine{line}).wait(60);
  }
  static bool installed(const std::string& test) {
    return Program(ShellLine{"exec " + test}).wait(60).code == 0;
  }
};

// mpirun gives its processes a terminal, on which a slow run renews its line of progress.
constexpr const char* kMpirun = "env TERM=dumb mpirun --allow-run-as-root --oversubscribe -n 2";

TEST_F(Launchers, MpirunStartsTwoProcesses) {
  if (!installed("mpirun --version")) GTEST_SKIP() << "mpirun is not installed (openmpi-bin)";
  const Outcome outcome = launch(kMpirun, quick_train({"--processes", "--replicas", "2"}));
  EXPECT_EQ(outcome.code, 0) << outcome.err;
  EXPECT_TRUE(holds(outcome.out, {"4 in 2 processes", "\n    1   "}));
}

TEST_F(Launchers, MpirunDealsOutStages) {
  if (!installed("mpirun --version")) GTEST_SKIP() << "mpirun is not installed (openmpi-bin)";
  expect_bytes_of_threads([](const Arguments& line) { return launch(kMpirun, line); });
}

TEST_F(Launchers, SrunsVariablesDealOutStages) {
  const auto variables_of = [](int process) {
    return std::map<std::string, std::string>{{"SLURM_PROCID", std::to_string(process)},
                                              {"SLURM_NTASKS", "2"},
                                              {"SLURM_STEP_NUM_TASKS", "2"},
                                              {"SLURM_STEP_TASKS_PER_NODE", "2"},
                                              {"SLURM_LOCALID", std::to_string(process)},
                                              {"SLURM_STEP_ID", "0"},
                                              {"SLURM_STEP_NODELIST", "localhost"},
                                              {"SLURM_JOB_ID", std::to_string(::getpid())}};
  };
  expect_bytes_of_threads([&](const Arguments& line) {
    Program second(line, {.environment = variables_of(1)});
    Outcome first = ringlet(line, {.environment = variables_of(0)});
    EXPECT_TRUE(succeeds(second.wait()));
    return first;
  });
}

TEST_F(Launchers, TorchrunStartsTwoProcessesAndDealsOutStages) {
  if (!installed("/usr/bin/python3 -c 'import torch.distributed.run'")) {
    GTEST_SKIP() << "torchrun is not installed (python3-torch)";
  }
  const std::string torchrun = "/usr/bin/python3 " + checkout("tests/cli/torchrun.py") +
                               " --no_python --nproc_per_node 2 --master_port " +
                               std::to_string(20000 + ::getpid() % 10000);
  expect_bytes_of_threads([&](const Arguments& line) { return launch(torchrun, line); });
}

}  // namespace
}  // namespace ringlet::testing
