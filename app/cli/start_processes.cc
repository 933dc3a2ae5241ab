#include <fmt/format.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <chrono>
#include <csignal>
#include <cstdlib>
#include <cstring>
#include <optional>
#include <string>
#include <system_error>
#include <vector>

#include "app/cli/error_exit.h"
#include "app/cli/family_board.h"
#include "app/cli/own_program.h"
#include "app/cli/processes.h"
#include "app/cli/signals.h"
#include "comm/core/errors.h"
#include "comm/processes/secret.h"

namespace ringlet::app {

namespace {

using Clock = std::chrono::steady_clock;

constexpr int kNotStarted = 127;                  // what shells say of a program that is not there
constexpr std::chrono::seconds kGrace(15);        // for the others to end after a failure
constexpr std::chrono::seconds kGraceAtStart(1);  // as long as they have not begun

struct Child {
  pid_t pid = -1;
  bool running = true;
  bool stopped = false;  // it runs, but not just now (SIGSTOP)
  bool ended_by_us = false;
  int code = 0;    // if it exited
  int signal = 0;  // if one ended it
  bool failed() const {
    return !running && !ended_by_us && (signal != 0 || (code != 0 && code < 128));
  }
};

/// This process's own command line, as main() has had it.
std::vector<std::string>& command_line() {
  static std::vector<std::string> words;
  return words;
}

/// What a signal that is blocked does is the same whether it is ignored or not, so those that are
/// ignored must not be blocked.
sigset_t watched_signals() {
  sigset_t set;
  sigemptyset(&set);
  for (const int signal : kStopSignals) {
    if (!ignores(signal)) sigaddset(&set, signal);
  }
  sigaddset(&set, SIGCHLD);
  return set;
}

const char* name_of(int signal) {
  const char* name = sigdescr_np(signal);
  return name == nullptr ? "unknown" : name;
}

class Family {
 public:
  /// Blocks the signals that wait() takes; the children get the mask that was there before.
  explicit Family(int processes) : watched_(watched_signals()), board_(processes) {
    pthread_sigmask(SIG_BLOCK, &watched_, &before_);
  }
  ~Family() {
    end_all();
    for (Child& child : children_) {
      if (child.running) ::waitpid(child.pid, nullptr, 0);
    }
    pthread_sigmask(SIG_SETMASK, &before_, nullptr);
  }
  Family(const Family&) = delete;
  Family& operator=(const Family&) = delete;

  void start(int process, int processes, const std::string& run,
             const std::vector<std::string>& command);
  /// Waits until all have ended.
  void wait();
  /// Throws CommError where none of them has told the user of a failure.
  int exit_code();

 private:
  [[noreturn]] void become_child(pid_t parent, int process, int processes, const std::string& run,
                                 std::vector<std::string> command);
  void reap();
  void note_status(Child& child, int status);
  void end_the_rest();
  static void end(Child& child);
  void end_all();
  void pass_on(int signal);
  std::string obituary(const Child& child) const;
  bool any_running() const {
    return std::any_of(children_.begin(), children_.end(), [](auto& c) { return c.running; });
  }

  sigset_t watched_;
  sigset_t before_{};
  std::vector<Child> children_;
  FamilyBoard board_;
  int passed_on_ = 0;
  std::optional<Clock::time_point> failed_at_;
  std::optional<std::size_t> failed_{};  // the child that we would name
  bool we_tell_ = false;
};

void Family::start(int process, int processes, const std::string& run,
                   const std::vector<std::string>& command) {
  const pid_t parent = ::getpid();
  const pid_t pid = ::fork();
  if (pid == 0) become_child(parent, process, processes, run, command);
  if (pid < 0) {
    throw comm::CommError(fmt::format("process {} cannot be started: {}; start fewer", process,
                                      std::generic_category().message(errno)));
  }
  children_.push_back({.pid = pid});
}

void Family::become_child(pid_t parent, int process, int processes, const std::string& run,
                          std::vector<std::string> command) {
  ::prctl(PR_SET_PDEATHSIG, SIGKILL);
  if (::getppid() != parent) ::_exit(kNotStarted);  // it died before the line above
  // NOLINTBEGIN(concurrency-mt-unsafe): behind fork() there is one thread
  ::setenv("RINGLET_PROCESS", std::to_string(process).c_str(), 1);
  ::setenv("RINGLET_PROCESS_COUNT", std::to_string(processes).c_str(), 1);
  ::setenv("RINGLET_RUN", run.c_str(), 1);
  // NOLINTEND(concurrency-mt-unsafe)
  board_.hand_down();
  for (const int signal : kStopSignals) {  // until execv() a handler would note it in vain
    if (!ignores(signal)) std::signal(signal, SIG_DFL);
  }
  pthread_sigmask(SIG_SETMASK, &before_, nullptr);
  std::vector<char*> argv;
  for (std::string& word : command) argv.push_back(word.data());
  argv.push_back(nullptr);
  ::execv(own_program().c_str(), argv.data());
  board_.note_not_started(errno);
  ::_exit(kNotStarted);
}

void Family::wait() {
  if (stop_noted()) pass_on(noted_signal());  // before watched_ was blocked
  while (any_running()) {
    constexpr timespec kLook{0, 200'000'000};
    const int signal = ::sigtimedwait(&watched_, nullptr, &kLook);
    if (std::find(kStopSignals.begin(), kStopSignals.end(), signal) != kStopSignals.end()) {
      pass_on(signal);
    }
    reap();
    if (failed_at_ && passed_on_ == 0) end_the_rest();
    if (failed_at_ && Clock::now() - *failed_at_ > kGrace) end_all();
  }
}

void Family::reap() {
  for (Child& child : children_) {
    int status = 0;
    while (child.running && ::waitpid(child.pid, &status, WNOHANG | WUNTRACED | WCONTINUED) > 0) {
      note_status(child, status);
    }
  }
}

void Family::note_status(Child& child, int status) {
  child.stopped = WIFSTOPPED(status);
  child.running = !WIFEXITED(status) && !WIFSIGNALED(status);
  if (WIFEXITED(status)) child.code = WEXITSTATUS(status);
  if (WIFSIGNALED(status)) child.signal = WTERMSIG(status);
  if (!child.failed()) return;
  if (!failed_at_) failed_at_ = Clock::now();
  // Who was killed says more than who ends because of that.
  const bool is_first = !failed_ || (child.signal != 0 && children_[*failed_].signal == 0);
  if (is_first) failed_ = static_cast<std::size_t>(&child - children_.data());
}

/// After the first failure. Those that work together learn of it by themselves, and end. Before
/// that nothing is lost, and who was killed cannot be named by the others: we do.
void Family::end_the_rest() {
  if (!board_.all_came()) {
    const bool was_killed = children_[*failed_].signal != 0;
    we_tell_ = we_tell_ || (was_killed && board_.claim_error());
    if (we_tell_ || Clock::now() - *failed_at_ > kGraceAtStart) return end_all();
  }
  for (Child& child : children_) {  // who is stopped cannot end
    if (child.running && child.stopped) end(child);
  }
}

void Family::end(Child& child) { child.ended_by_us = ::kill(child.pid, SIGKILL) == 0; }

void Family::end_all() {
  for (Child& child : children_) {
    if (child.running) end(child);
  }
}

/// Noted here too: all may be past the place where they heed it, and a caller who starts others
/// next has to know.
void Family::pass_on(int signal) {
  note_stop(signal);
  passed_on_ = signal;
  for (const Child& child : children_) {
    if (!child.running) continue;
    ::kill(child.pid, signal);
    ::kill(child.pid, SIGCONT);  // who is stopped (SIGSTOP) hears of nothing until it goes on
  }
}

std::string Family::obituary(const Child& child) const {
  const auto process = &child - children_.data();
  if (const int error = board_.not_started(); error != 0) {
    return fmt::format("{} cannot be started as process {}: {}; call it by its path", own_program(),
                       process, std::generic_category().message(error));
  }
  std::string ranks = board_.ranks_of(static_cast<int>(process));
  if (!ranks.empty()) ranks = ", " + ranks;
  if (child.signal == 0) {
    return fmt::format(
        "process {} (pid {}{}) ended with code {} and said nothing; without --processes it may say "
        "more",
        process, child.pid, ranks, child.code);
  }
  return fmt::format(
      "process {} (pid {}{}) was ended by signal {} ({}); the system's log may say why (dmesg)",
      process, child.pid, ranks, child.signal, name_of(child.signal));
}

int Family::exit_code() {
  constexpr int kSignalled = 128;
  int failed = 0, interrupted = 0;
  for (const Child& child : children_) {
    int& kind = child.code < kSignalled ? failed : interrupted;
    kind = std::max(kind, child.code);  // 2, a wrong command line, says more than 1
  }
  if (!failed_) return interrupted;
  const Child& first = children_[*failed_];
  const bool interrupted_early = passed_on_ != 0 && first.signal == passed_on_;
  if (failed == 0 && interrupted_early) return kSignalled + passed_on_;
  if (we_tell_ || board_.claim_error()) throw comm::CommError(obituary(first));
  return std::max(failed, kFailed);
}

}  // namespace

std::string command_in_words() {
  std::string words;
  for (std::size_t i = 1; i < command_line().size() && i <= 2; ++i) {
    const std::string& word = command_line()[i];
    if (word.starts_with("-") || (i == 2 && words != "bench")) break;
    words += (words.empty() ? "" : " ") + word;
  }
  return words;
}

void remember_command_line(int argc, char** argv) { command_line().assign(argv, argv + argc); }

int start_processes(int count) {
  // Random: process numbers are the same in two containers, which may share a network.
  const std::string run = comm::hexadecimal(comm::new_secret());
  Family family(count);
  for (int process = 0; process < count; ++process) {
    family.start(process, count, run, command_line());
  }
  family.wait();
  return family.exit_code();
}

}  // namespace ringlet::app
