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
#include <fstream>
#include <iterator>
#include <optional>
#include <string>
#include <system_error>
#include <vector>

#include "app/cli/processes.h"
#include "comm/errors.h"

namespace ringlet::app {

namespace {

using Clock = std::chrono::steady_clock;

constexpr int kNotStarted = 127;            // what shells say of a program that is not there
constexpr std::chrono::seconds kGrace(15);  // for the others to end after a failure
constexpr std::array kPassedOn{SIGINT, SIGTERM, SIGHUP};

struct Child {
  pid_t pid = -1;
  bool running = true;
  int code = 0;    // if it exited
  int signal = 0;  // if one ended it
  bool failed() const { return !running && (signal != 0 || (code != 0 && code < 128)); }
};

/// This process's own command line.
std::vector<std::string> command_line() {
  std::ifstream file("/proc/self/cmdline", std::ios::binary);
  const std::string all{std::istreambuf_iterator<char>(file), {}};
  std::vector<std::string> words;
  for (std::size_t begin = 0; begin < all.size();) {
    const std::size_t end = all.find('\0', begin);
    words.push_back(all.substr(begin, end - begin));
    begin = end == std::string::npos ? all.size() : end + 1;
  }
  return words;
}

sigset_t watched_signals() {
  sigset_t set;
  sigemptyset(&set);
  for (const int signal : kPassedOn) sigaddset(&set, signal);
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
  Family() : watched_(watched_signals()) { pthread_sigmask(SIG_BLOCK, &watched_, &before_); }
  ~Family() {
    tell_all(SIGKILL);
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
  int exit_code() const;

 private:
  [[noreturn]] void become_child(pid_t parent, int process, int processes, const std::string& run,
                                 std::vector<std::string> command);
  void reap();
  void tell_all(int signal);
  bool any_running() const {
    return std::any_of(children_.begin(), children_.end(), [](auto& c) { return c.running; });
  }

  sigset_t watched_;
  sigset_t before_{};
  std::vector<Child> children_;
  int passed_on_ = 0;
  std::optional<Clock::time_point> failed_at_;
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
  pthread_sigmask(SIG_SETMASK, &before_, nullptr);
  std::vector<char*> argv;
  for (std::string& word : command) argv.push_back(word.data());
  argv.push_back(nullptr);
  ::execv("/proc/self/exe", argv.data());
  ::_exit(kNotStarted);
}

void Family::wait() {
  while (any_running()) {
    constexpr timespec kLook{0, 200'000'000};
    const int signal = ::sigtimedwait(&watched_, nullptr, &kLook);
    if (std::find(kPassedOn.begin(), kPassedOn.end(), signal) != kPassedOn.end()) {
      passed_on_ = signal;
      tell_all(signal);
    }
    reap();
    if (failed_at_ && Clock::now() - *failed_at_ > kGrace) tell_all(SIGKILL);
  }
}

void Family::reap() {
  for (Child& child : children_) {
    int status = 0;
    if (!child.running || ::waitpid(child.pid, &status, WNOHANG) != child.pid) continue;
    child.running = false;
    if (WIFEXITED(status)) child.code = WEXITSTATUS(status);
    if (WIFSIGNALED(status)) child.signal = WTERMSIG(status);
    if (child.failed() && !failed_at_) failed_at_ = Clock::now();
  }
}

void Family::tell_all(int signal) {
  for (const Child& child : children_) {
    if (child.running) ::kill(child.pid, signal);
  }
}

int Family::exit_code() const {
  constexpr int kSignalled = 128;
  int failed = 0, interrupted = 0;
  const Child* killed = nullptr;
  for (const Child& child : children_) {
    if (child.signal != 0 && killed == nullptr) killed = &child;
    int& kind = child.code < kSignalled ? failed : interrupted;
    kind = std::max(kind, child.code);  // 2, a wrong command line, says more than 1
  }
  if (failed != 0) return failed;  // who exits with a code has told why
  if (killed == nullptr) return interrupted;
  if (killed->signal == passed_on_) return kSignalled + passed_on_;
  throw comm::CommError(fmt::format(
      "process {} (pid {}) was ended by signal {} ({}); the system's log may say why (dmesg)",
      killed - children_.data(), killed->pid, killed->signal, name_of(killed->signal)));
}

}  // namespace

int start_processes(int count) {
  const std::string run = fmt::format("{} {}", ::getpid(), Clock::now().time_since_epoch().count());
  const std::vector<std::string> command = command_line();
  Family family;
  for (int process = 0; process < count; ++process) family.start(process, count, run, command);
  family.wait();
  return family.exit_code();
}

}  // namespace ringlet::app
