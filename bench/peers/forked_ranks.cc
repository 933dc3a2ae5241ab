#include "bench/peers/forked_ranks.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <sched.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <climits>
#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <exception>
#include <sstream>
#include <stdexcept>
#include <string>
#include <system_error>
#include <utility>
#include <vector>

#include "bench/all_reduce/pinning.h"

namespace ringlet::bench::peers {

namespace {

[[noreturn]] void fail(const char* call) {
  throw std::system_error(errno, std::generic_category(), call);
}

/// A pipe on which a rank says why it fails.
class Complaints {
 public:
  Complaints() {
    if (::pipe2(ends_.data(), O_CLOEXEC) != 0) fail("pipe2");
  }
  ~Complaints() {
    for (const int end : ends_) ::close(end);
  }
  Complaints(const Complaints&) = delete;
  Complaints& operator=(const Complaints&) = delete;

  void say(const std::string& why) const {
    (void)!::write(ends_[1], why.data(), std::min<std::size_t>(why.size(), PIPE_BUF));
  }
  /// What the ranks have said so far; call it once one of them has.
  std::string hear() const {
    std::array<char, PIPE_BUF> text{};
    const ssize_t got = ::read(ends_[0], text.data(), text.size());
    return {text.data(), static_cast<std::size_t>(std::max<ssize_t>(got, 0))};
  }

 private:
  std::array<int, 2> ends_{};
};

constexpr int kFailed = 1;

/// The child's side of fork(): never returns.
[[noreturn]] void become_rank(int rank, pid_t parent, const Complaints& complaints,
                              const std::function<void(int)>& run) {
  ::prctl(PR_SET_PDEATHSIG, SIGKILL);
  int code = ::getppid() == parent ? 0 : kFailed;  // it died before we asked to die with it
  if (code == 0) {
    try {
      run(rank);
    } catch (const std::exception& error) {
      complaints.say(error.what());
      code = kFailed;
    }
  }
  std::fflush(stdout);
  ::_exit(code);
}

/// The forked processes; kills what still runs when it goes.
class Children {
 public:
  ~Children() {
    for (const pid_t pid : pids_) {
      if (pid > 0) ::kill(pid, SIGKILL);
    }
    for (const pid_t pid : pids_) {
      if (pid > 0) ::waitpid(pid, nullptr, 0);
    }
  }
  void add(pid_t pid) { pids_.push_back(pid); }
  bool empty() const {
    return std::all_of(pids_.begin(), pids_.end(), [](pid_t pid) { return pid == 0; });
  }
  /// Waits for one to end. Its rank and wait status.
  std::pair<int, int> wait() {
    int status = 0;
    pid_t pid = 0;
    do {
      pid = ::waitpid(-1, &status, 0);
    } while (pid < 0 && errno == EINTR);
    if (pid < 0) fail("waitpid");
    const auto found = std::find(pids_.begin(), pids_.end(), pid);
    *found = 0;
    return {static_cast<int>(found - pids_.begin()), status};
  }

 private:
  std::vector<pid_t> pids_;  ///< by rank; 0: has ended
};

}  // namespace

ForkedMemory::ForkedMemory(std::size_t bytes)
    : data_(::mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0)),
      bytes_(bytes) {
  if (data_ == MAP_FAILED) fail("mmap of the memory that the ranks share");
}

ForkedMemory::~ForkedMemory() { ::munmap(data_, bytes_); }

void bind_to_processor(int rank) {
  if (!pin_rank(rank)) fail("sched_setaffinity");
}

std::string enter_machine(int rank) {
  const char* const names = std::getenv("MACHINE_PIDS");  // NOLINT(concurrency-mt-unsafe)
  std::istringstream pids(names == nullptr ? "" : names);
  int pid = 0;
  for (int machine = 0; machine <= rank; ++machine) {
    if (pids >> pid) continue;
    throw std::runtime_error(fmt::format(
        "MACHINE_PIDS has no machine for rank {}; start with scripts/machines {} -- ...", rank,
        rank + 1));
  }
  const std::string file = fmt::format("/proc/{}/ns/net", pid);
  const int network = ::open(file.c_str(), O_RDONLY | O_CLOEXEC);
  if (network < 0 || ::setns(network, CLONE_NEWNET) != 0) fail("setns to a machine's network");
  ::close(network);
  return fmt::format("10.77.0.{}", rank + 1);
}

void run_forked(int ranks, const std::function<void(int rank)>& run) {
  const pid_t parent = ::getpid();
  const Complaints complaints;
  Children children;
  for (int rank = 0; rank < ranks; ++rank) {
    const pid_t pid = ::fork();
    if (pid < 0) fail("fork");
    if (pid == 0) become_rank(rank, parent, complaints, run);
    children.add(pid);
  }
  while (!children.empty()) {
    const auto [rank, status] = children.wait();
    if (WIFSIGNALED(status)) {
      throw std::runtime_error(
          fmt::format("rank {} was ended by signal {}", rank, WTERMSIG(status)));
    }
    if (WEXITSTATUS(status) != 0) {
      throw std::runtime_error(fmt::format("rank {}: {}", rank, complaints.hear()));
    }
  }
}

}  // namespace ringlet::bench::peers
