// A process that is killed, stopped, or throws in one of the actions of its stage: the other one
// ends, in time, and says which stage that was. Each of two processes has a stage of two replicas,
// as --processes 2 deals them out.

#include <gtest/gtest.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <chrono>
#include <csignal>
#include <filesystem>
#include <functional>
#include <iterator>
#include <memory>
#include <optional>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "base/error.h"
#include "comm/process_group.h"
#include "tests/comm/processes.h"
#include "tests/train/failing_stages.h"
#include "train/sync/transport_choice.h"

namespace ringlet::train {

namespace {

using std::chrono::duration;
using std::chrono::steady_clock;

constexpr int kProcesses = 2;
// Seconds. Who is stopped is found by it; of the dead and of errors the others hear at once. It is
// longer than a busy machine takes to start some dozens of processes, or these would be late.
constexpr double kCommTimeout = 4;
constexpr double kLongTimeout = 60;
constexpr double kAtOnce = 2;  // of which a busy machine takes half

enum class Fate { killed, stopped, throwing };

struct Death {
  In action;
  int stage;  // and process
  PipelineSchedule schedule;
  int replicas = kReplicas;
  const char* awaited = "";  // of one replica: what the other stage waits for where this one stops
};

std::string death_in_words(const Death& death) {
  return std::string(name_of(death.action)) + " of stage " + std::to_string(death.stage) + ", " +
         name_of(death.schedule);
}

void die(Fate fate) {
  if (fate == Fate::killed) ::raise(SIGKILL);
  if (fate == Fate::stopped) ::raise(SIGSTOP);
  if (fate == Fate::throwing) throw Error("the stage broke");
}

/// Trains as one of the processes. Returns what it tells the user; nothing where another one does.
std::string outcome_of(int process, const std::string& run, const Death& death, Fate fate) {
  const auto trap = std::make_shared<Trap>();
  trap->action = death.action;
  trap->spring = [fate] { die(fate); };
  comm::ProcessGroup own({process, kProcesses, run, "test"},
                         {.replicas = death.replicas, .timeout_seconds = 20});
  try {
    TrainOptions options = breaking_options(death.replicas, death.stage, trap, death.schedule);
    options.execution.in_processes = true;
    options.execution.measures_stages = false;
    options.execution.comm_timeout = fate == Fate::stopped ? kCommTimeout : kLongTimeout;
    const RunSetup setup =
        make_run_setup(options, formula_splits(6400), own.size(), std::nullopt, &own);
    TrappedGroup group(own, death.stage * death.replicas, trap);
    name_ranks(group, setup);
    run_ranks(group, decided(options.execution), [&](Device& device, const Ranks& ranks) {
      TrainLoop loop(setup, device, ranks, {});
      loop.step();
      trap->armed = process == death.stage;
      while (loop.step()) {
      }
    });
    own.leave();
    return "came to its end";
  } catch (...) {  // as app/cli/processes.cc
    const std::string message = message_of_current_exception();
    own.abort(own.first_rank(), message);
    if (!own.tells_user()) return "";
    const std::optional<comm::RootCause> cause = own.rendezvous().root_cause();
    return cause && !own.holds(cause->rank) ? cause->message : message;  // of the dead, or its own
  }
}

/// The processes of a run in which one dies. Forks: no other thread may run.
class DyingRun {
 public:
  DyingRun(const Death& death, Fate fate) : death_(death), fate_(fate) {
    const std::string run = comm::new_run();
    for (int process = 0; process < kProcesses; ++process) start(process, run);
  }
  ~DyingRun() {
    for (const Child& child : children_) {
      ::close(child.pipe);
      if (child.ended) continue;
      ::kill(child.pid, SIGKILL);
      ::waitpid(child.pid, nullptr, 0);
    }
  }
  DyingRun(const DyingRun&) = delete;
  DyingRun& operator=(const DyingRun&) = delete;

  /// Looks who has ended; false once nobody runs any more, or they have had their time.
  bool goes_on() {
    bool one_runs = false;
    for (Child& child : children_) {
      int status = 0;
      if (!child.ended && ::waitpid(child.pid, &status, WNOHANG | WUNTRACED) > 0) {
        child.stopped = WIFSTOPPED(status);
        child.ended = !child.stopped;
        if (!lost_at_) lost_at_ = steady_clock::now();
        seconds_ = duration<double>(steady_clock::now() - *lost_at_).count();
      }
      one_runs = one_runs || (!child.ended && !child.stopped);
    }
    return one_runs && steady_clock::now() - begun_ < std::chrono::seconds(60);
  }

  const Death& death() const { return death_; }
  bool other_ended() const { return children_[static_cast<std::size_t>(1 - death_.stage)].ended; }
  /// From the first process's end, or stop, to that of the other.
  double seconds() const { return seconds_; }
  pid_t pid_of_victim() const { return children_[static_cast<std::size_t>(death_.stage)].pid; }
  /// What all say, one behind the other. Once: reads the pipes.
  std::string said() const {
    std::string text;
    for (const Child& child : children_) {
      if (!child.ended) continue;
      std::array<char, 4096> read{};
      const ssize_t size = ::read(child.pipe, read.data(), read.size());
      text.append(read.data(), static_cast<std::size_t>(std::max<ssize_t>(size, 0)));
    }
    return text;
  }

 private:
  struct Child {
    pid_t pid = -1;
    int pipe = -1;
    bool stopped = false, ended = false;
  };

  void start(int process, const std::string& run) {
    std::array<int, 2> pipe{};
    if (::pipe(pipe.data()) != 0) throw Error("no pipe");
    const pid_t pid = ::fork();
    if (pid == 0) {
      const std::string said = outcome_of(process, run, death_, fate_);
      (void)!::write(pipe[1], said.data(), said.size());
      ::_exit(0);
    }
    ::close(pipe[1]);
    children_.push_back({pid, pipe[0]});
  }

  Death death_;
  Fate fate_;
  steady_clock::time_point begun_ = steady_clock::now();
  std::optional<steady_clock::time_point> lost_at_;
  std::vector<Child> children_;
  double seconds_ = 0;
};

std::string process_in_words(int stage) {
  const int first = stage * kReplicas;
  return stage_in_words(stage) + ", replicas 0 and 1, ranks " + std::to_string(first) + " and " +
         std::to_string(first + 1);
}

/// Whatever Ringlet leaves in shared memory has its name.
std::vector<std::string> left_in_memory() {
  std::vector<std::string> names;
  for (const auto& entry : std::filesystem::directory_iterator("/dev/shm")) {
    const std::string name = entry.path().filename();
    if (name.find("ringlet") != std::string::npos) names.push_back(name);
  }
  return names;
}

class DyingStage : public ::testing::TestWithParam<PipelineSchedule> {
 protected:
  static std::vector<Death> deaths() {
    std::vector<Death> deaths;
    for (const In action : {In::forward, In::backward, In::move_in, In::move_out, In::sync}) {
      for (const int stage : {0, 1}) deaths.push_back({action, stage, GetParam()});
    }
    return deaths;
  }
  /// Until each has ended, or has had its time.
  static void await(const std::vector<std::unique_ptr<DyingRun>>& runs) {
    bool one_goes_on = true;
    while (std::exchange(one_goes_on, false)) {
      for (const auto& run : runs) one_goes_on |= run->goes_on();
      std::this_thread::sleep_for(std::chrono::milliseconds(1));
    }
    for (const auto& run : runs) EXPECT_TRUE(run->other_ended()) << death_in_words(run->death());
  }
  /// Those that wait for the time-out all side by side. Two of the others: their time is measured,
  /// and a machine has few processors.
  static std::vector<std::unique_ptr<DyingRun>> lose(Fate fate, const std::vector<Death>& deaths) {
    const std::size_t at_once = fate == Fate::stopped ? deaths.size() : 2;
    std::vector<std::unique_ptr<DyingRun>> all;
    for (std::size_t begin = 0; begin < deaths.size(); begin += at_once) {
      std::vector<std::unique_ptr<DyingRun>> runs;
      for (std::size_t i = begin; i < std::min(begin + at_once, deaths.size()); ++i) {
        runs.push_back(std::make_unique<DyingRun>(deaths[i], fate));
      }
      await(runs);
      std::move(runs.begin(), runs.end(), std::back_inserter(all));
    }
    return all;
  }
};

TEST_P(DyingStage, IsNamedAtOnceWhereItIsKilled) {
  for (const auto& run : lose(Fate::killed, deaths())) {
    const Death& death = run->death();
    EXPECT_EQ(run->said(), "process " + std::to_string(death.stage) + " (pid " +
                               std::to_string(run->pid_of_victim()) + ", " +
                               process_in_words(death.stage) +
                               ") died; the system's log may say why (dmesg)")
        << death_in_words(death);
    EXPECT_LT(run->seconds(), kAtOnce) << death_in_words(death);
  }
  EXPECT_EQ(left_in_memory(), std::vector<std::string>());
}

TEST_P(DyingStage, IsNamedAtOnceWhereItThrows) {
  for (const auto& run : lose(Fate::throwing, deaths())) {
    const Death& death = run->death();
    const bool of_layer = death.action == In::forward || death.action == In::backward;
    const auto message_of = [&](int replica) {  // a layer's, of whichever comes first
      return stage_in_words(death.stage) + ", replica " + std::to_string(replica) + ", rank " +
             std::to_string(death.stage * kReplicas + replica) + ": the stage broke";
    };
    const std::string said = run->said();
    EXPECT_TRUE(said == message_of(0) || (of_layer && said == message_of(1)))
        << death_in_words(death) << ": " << said;
    EXPECT_LT(run->seconds(), kAtOnce) << death_in_words(death);
  }
}

TEST_P(DyingStage, IsNamedAfterTheTimeOutWhereItIsStopped) {
  // Where a stage has one replica, there is one rank that waits, and one message. In shared memory
  // a message is sent though nobody takes it.
  const PipelineSchedule schedule = GetParam();
  std::vector<Death> all = deaths();
  all.push_back({In::forward, 0, schedule, 1, "activation of micro-batch 0"});
  all.push_back({In::forward, 1, schedule, 1, "gradient of micro-batch 0"});
  all.push_back({In::backward, 1, schedule, 1, "gradient of micro-batch 0"});
  for (const auto& run : lose(Fate::stopped, all)) {
    const Death& death = run->death();
    const std::string said = run->said(), stage = std::to_string(death.stage);
    EXPECT_LT(run->seconds(), kCommTimeout + 5) << death_in_words(death);
    if (death.replicas > 1) {
      EXPECT_NE(said.find(process_in_words(death.stage) + " (process " + stage +
                          ") do not answer, so its process is stopped or hangs: see ps; "),
                std::string::npos)
          << death_in_words(death) << ": " << said;
      continue;
    }
    EXPECT_NE(
        said.find(" waited 4 s in an exchange with rank " + stage + " (" + death.awaited + "); "),
        std::string::npos)
        << death_in_words(death) << ": " << said;
    EXPECT_NE(said.find(" bytes from rank " + stage + " (" + death.awaited + ")"),
              std::string::npos)
        << death_in_words(death) << ": " << said;
  }
}

INSTANTIATE_TEST_SUITE_P(Schedules, DyingStage,
                         ::testing::Values(PipelineSchedule::naive, PipelineSchedule::gpipe,
                                           PipelineSchedule::one_f_one_b),
                         [](const auto& test) {
                           const std::string name = name_of(test.param);
                           return name == "1f1b" ? "OneFOneB" : name;
                         });

}  // namespace

}  // namespace ringlet::train
