#include "tests/cli/failing_processes.h"

#include <unistd.h>

#include <chrono>
#include <csignal>
#include <thread>

namespace ringlet::testing {

namespace {

using Environment = std::map<std::string, std::string>;

Environment environment_of(int process, int processes) {
  Environment variables = first_of_two();
  variables["RANK"] = std::to_string(process);
  variables["WORLD_SIZE"] = std::to_string(processes);
  return variables;
}

/// A training that would take minutes.
Arguments long_train(const Arguments& more) {
  return Arguments{"train", "--data",       "synthetic", "--synthetic-train", "6400", "--epochs",
                   "1000",  "--batch-size", "64",        "--model",           "mlp"} +
         more;
}

constexpr const char* kFirstEpoch = "\n    1 ";

void wait_until_it_listens() { std::this_thread::sleep_for(std::chrono::milliseconds(500)); }

/// The outcome of process 0 of two, where process 1 got `signal`.
Outcome signal_the_other(int signal, const Arguments& more = {}) {
  const Arguments line = long_train(Arguments{"--processes"} + more);
  Program first(line, {.environment = environment_of(0, 2)}),
      second(line, {.environment = environment_of(1, 2)});
  EXPECT_TRUE(first.wait_for(kFirstEpoch));
  second.send(signal);
  return first.wait();
}

}  // namespace

Environment first_of_two() {
  return {{"RANK", "0"},
          {"WORLD_SIZE", "2"},
          {"MASTER_ADDR", "127.0.0.1"},
          {"MASTER_PORT", std::to_string(::getpid())}};
}

Outcome outlive_the_other(const Arguments& more) { return signal_the_other(SIGKILL, more); }
// On a busy machine, too, others take less than three seconds.
Outcome wait_for_a_stopped_one(const Arguments& more) {
  return signal_the_other(SIGSTOP, Arguments{"--comm-timeout", "3"} + more);
}

Outcome lose_both(const Arguments& more) {
  Program program(long_train(Arguments{"--processes", "2"} + more));
  EXPECT_TRUE(program.wait_for(kFirstEpoch));
  for (const int signal : {SIGSTOP, SIGKILL}) {  // stopped, neither can tell of the other's death
    for (const pid_t child : children_of(program.pid())) ::kill(child, signal);
  }
  Outcome outcome = program.wait();
  outcome.out.clear();
  return outcome;
}

Outcome come_twice_as_first() {
  const ProgramOptions options{.environment = environment_of(0, 2)};
  const Arguments line = quick_train({"--processes", "--comm-timeout", "3"});
  Program first(line, options);
  wait_until_it_listens();
  return ringlet(line, options);
}

Outcome come_twice_as_second() {
  const Arguments line = quick_train({"--processes", "--comm-timeout", "5"});
  Program first(line, {.environment = environment_of(0, 3)});
  Program second(line, {.environment = environment_of(1, 3)}),
      twin(line, {.environment = environment_of(1, 3)});
  return first.wait();
}

Outcome wait_for_one_that_cannot_begin() {
  const Arguments line = quick_train({"--processes", "--comm-timeout", "10"});
  Program first(line, {.environment = environment_of(0, 2)});
  wait_until_it_listens();
  ringlet(line + Arguments{"--transport", "local"}, {.environment = environment_of(1, 2)});
  return first.wait();
}

Outcome disagree(const Arguments& first, const Arguments& second) {
  const Arguments both{"--processes", "--comm-timeout", "5"};
  Program one(quick_train(both + first), {.environment = environment_of(0, 2)});
  Program other(quick_train(both + second), {.environment = environment_of(1, 2)});
  const Outcome of_one = one.wait(), of_other = other.wait();
  EXPECT_NE(of_one.code, 0);
  EXPECT_NE(of_other.code, 0);
  EXPECT_TRUE(of_one.err.empty() || of_other.err.empty()) << of_one.err << of_other.err;
  return of_one.err.empty() ? of_other : of_one;
}

}  // namespace ringlet::testing
