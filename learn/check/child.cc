#include "learn/check/child.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <malloc.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <ctime>
#include <filesystem>
#include <fstream>
#include <limits>
#include <new>
#include <string_view>
#include <system_error>
#include <thread>
#include <vector>

#include "base/one_line.h"

namespace ringlet::learn {

namespace {

constexpr int kConcluded = 93, kExited = 94;  // statuses of the child
constexpr std::int64_t kMostPrinted = 64 << 10;

volatile std::sig_atomic_t g_interrupted = 0;
int g_printed = -1;  // of the child: the file that stands for its standard outputs

void on_exit_of_child() { _exit(kExited); }

[[noreturn]] void fail(const char* what) {
  throw std::system_error(errno, std::generic_category(), what);
}

std::int64_t address_space() {
  std::int64_t pages = 0;
  std::ifstream("/proc/self/statm") >> pages;
  return pages * sysconf(_SC_PAGESIZE);
}

/// Up to what the system allows.
void limit(__rlimit_resource resource, std::int64_t value) {
  rlimit limits{};
  getrlimit(resource, &limits);
  limits.rlim_cur = std::min(limits.rlim_max, static_cast<rlim_t>(value));
  setrlimit(resource, &limits);
}

/// What was printed, up to now. A thread that prints right now is not waited for.
void flush_printed() {
  if (ftrylockfile(stdout) != 0) return;
  fflush_unlocked(stdout);
  funlockfile(stdout);
}

/// Its own process group, without a terminal's input; it dies with its parent.
void settle_child(const Limits& limits, pid_t parent) {
  setpgid(0, 0);
  prctl(PR_SET_PDEATHSIG, SIGKILL);
  if (getppid() != parent) _exit(kExited);
  signal(SIGINT, SIG_DFL);
  signal(SIGTERM, SIG_DFL);
  signal(SIGXFSZ, SIG_IGN);  // what is printed beyond the limit is lost
  if (std::freopen("/dev/null", "r", stdin) == nullptr) _exit(kExited);
  dup2(g_printed, STDOUT_FILENO);
  dup2(g_printed, STDERR_FILENO);
  std::setvbuf(stdout, nullptr, _IOLBF, BUFSIZ);
  limit(RLIMIT_CORE, 0);
  limit(RLIMIT_FSIZE, kMostPrinted);
  limit(RLIMIT_AS, address_space() + limits.memory);
  mallopt(M_ARENA_MAX, 1);  // or each thread would take 128 MiB of addresses  // NOLINT: one thread
  std::atexit(on_exit_of_child);
  std::at_quick_exit(on_exit_of_child);
}

/// What a failed assert() prints; empty where the file printed none.
std::string failed_assertion(const std::string& printed) {
  constexpr std::string_view kBegin = "Assertion `", kEnd = "' failed.";
  const std::size_t begin = printed.rfind(kBegin);
  if (begin == std::string::npos) return {};
  const std::size_t text = begin + kBegin.size(), end = printed.find(kEnd, text);
  return end == std::string::npos ? std::string() : printed.substr(text, end - text);
}

std::string text_of_signal(int signal, const std::string& printed) {
  if (signal == SIGSEGV || signal == SIGBUS) {
    return "touches memory that is not its own (signal " + std::to_string(signal) + ")";
  }
  if (signal == SIGABRT) {
    constexpr std::size_t kLongest = 200;  // bytes
    const std::string assertion = failed_assertion(printed);
    if (!assertion.empty()) return "fails its assertion " + on_one_line(assertion, kLongest);
    return "aborts: an exception left a thread or a noexcept function, memory is damaged, or the "
           "file itself calls abort()";
  }
  const char* const name = strsignal(signal);  // NOLINT: one thread
  return fmt::format("is ended by signal {} ({})", signal, name);
}

std::string read_all(int file) {
  constexpr std::size_t kMost = 64 << 10;
  std::string text(kMost, '\0');
  const ssize_t bytes = pread(file, text.data(), text.size(), 0);
  text.resize(static_cast<std::size_t>(std::max<ssize_t>(bytes, 0)));
  return text;
}

enum class Ended : std::uint8_t { by_itself, still, late };

/// Whether a thread of the process runs, or would if it had a processor. One that is stopped, or
/// waits for a process that it has made of itself, does not.
bool runs(pid_t process) {
  std::error_code none;
  const auto threads = fmt::format("/proc/{}/task", process);
  for (const auto& thread : std::filesystem::directory_iterator(threads, none)) {
    std::string stat;
    std::getline(std::ifstream(thread.path() / "stat"), stat);
    const std::size_t name_end = stat.rfind(") ");
    if (name_end != std::string::npos && stat[name_end + 2] == 'R') return true;
  }
  return false;
}

double processor_seconds(pid_t process) {
  clockid_t clock{};
  timespec time{};
  if (clock_getcpuclockid(process, &clock) != 0 || clock_gettime(clock, &time) != 0) return 0;
  return static_cast<double>(time.tv_sec) + static_cast<double>(time.tv_nsec) * 1e-9;
}

/// What the child has spent; looked at many times a second.
class Spending {
 public:
  explicit Spending(pid_t child) : child_(child) {}
  /// `alone`: this time is the checker's own, and does not count.
  void look(bool alone) {
    const auto now = std::chrono::steady_clock::now();
    const double passed_s = std::chrono::duration<double>(now - looked_).count();
    looked_ = now;
    const double busy_s_of_all = processor_seconds(child_);
    const double more_s = busy_s_of_all - busy_s_of_all_;
    busy_s_of_all_ = busy_s_of_all;
    all_s += passed_s;
    if (alone) return;
    busy_s += more_s;
    if (!runs(child_)) asleep_s += passed_s;
  }
  double busy_s = 0, asleep_s = 0, all_s = 0;

 private:
  pid_t child_;
  double busy_s_of_all_ = 0;
  std::chrono::steady_clock::time_point looked_ = std::chrono::steady_clock::now();
};

/// Waits until the child ends, or does not get on.
Ended wait_for(pid_t child, const Limits& limits, const std::atomic<std::int64_t>& progress,
               const std::atomic<bool>& is_alone) {
  constexpr int kLookEvery = 10;
  Spending spending(child), moved = spending;
  std::int64_t seen = -1;
  for (int turn = 0;; ++turn) {
    siginfo_t info{};
    waitid(P_PID, static_cast<id_t>(child), &info, WEXITED | WNOHANG | WNOWAIT);
    if (info.si_pid == child) return Ended::by_itself;
    if (g_interrupted != 0) throw Interrupted();
    std::this_thread::sleep_for(std::chrono::milliseconds(2));
    if (turn % kLookEvery != 0) continue;
    spending.look(is_alone);
    if (const std::int64_t now = progress.load(); now != seen || is_alone) {
      seen = now;
      moved = spending;
    }
    if (spending.busy_s - moved.busy_s > limits.still_busy_s) return Ended::still;
    if (spending.asleep_s - moved.asleep_s > limits.still_asleep_s) return Ended::still;
    const double spent =
        spending.busy_s / limits.all_busy_s + spending.asleep_s / limits.all_asleep_s;
    if (spent > 1) return Ended::late;
    if (spending.all_s > limits.all_s) return Ended::late;
  }
}

/// Processes that this one has started, or that were left to it.
std::vector<pid_t> own_children() {
  std::vector<pid_t> children;
  std::ifstream list(fmt::format("/proc/self/task/{}/children", getpid()));
  for (pid_t child = 0; list >> child;) children.push_back(child);
  return children;
}

int end_process(pid_t process) {
  int status = 0;
  kill(process, SIGKILL);
  while (waitpid(process, &status, 0) == -1 && errno == EINTR) continue;
  return status;
}

/// Ends the child and what it has started, also what has left its process group: so this process
/// has taken in such orphans since before the child began.
class Reaper {
 public:
  explicit Reaper(pid_t child) : child_(child) {}
  ~Reaper() { reap(); }
  Reaper(const Reaper&) = delete;
  Reaper& operator=(const Reaper&) = delete;
  /// How the child ended.
  int reap() {
    if (child_ == 0) return status_;
    kill(-child_, SIGKILL);
    status_ = end_process(child_);
    child_ = 0;
    for (auto left = own_children(); !left.empty(); left = own_children()) {
      for (const pid_t process : left) end_process(process);
    }
    return status_;
  }

 private:
  pid_t child_;
  int status_ = 0;
};

}  // namespace

void let_write() { limit(RLIMIT_FSIZE, std::numeric_limits<std::int64_t>::max()); }

void Board::begin(char layer, const Case& at) {
  layer_ = layer;
  at_ = at;
  note(-1, 0);
  flush_printed();
  if (g_printed >= 0 && ftruncate(g_printed, 0) != 0) return;
}

void Board::note(int rank, int exchanges) {
  rank_ = rank;
  exchanges_ = exchanges;
  progress_.fetch_add(1, std::memory_order_relaxed);
}

std::string Board::where() const {
  if (at_.ranks == 0) return "before its first run it";
  std::string text = text_of(at_) + ": ";
  if (rank_ < 0) return text + "it";
  text += fmt::format("rank {}", rank_);
  if (exchanges_ > 0) {
    text += fmt::format(", after {} exchange{},", exchanges_, exchanges_ == 1 ? "" : "s");
  }
  return text;
}

void Board::conclude(Verdict verdict, const std::string& words) {
  const bool tells_case = at_.ranks > 0 && verdict != Verdict::not_written;
  end(verdict, tells_case ? text_of(at_) + ": " + words : words);
}

void Board::pass(const Case& at, const std::optional<Costs>& costs, const std::string& words) {
  at_ = at;
  has_costs_ = costs.has_value();
  costs_ = costs.value_or(Costs{});
  end(Verdict::passed, words);
}

void Board::end(Verdict verdict, const std::string& words) {
  if (getpid() != child_) _exit(kExited);  // a process that the file has made of itself
  if (has_concluded_.exchange(true)) {     // another thread does
    while (true) pause();
  }
  flush_printed();
  verdict_ = verdict;
  const std::string line = on_one_line(words, kWords - 1);
  std::copy(line.begin(), line.end(), words_);
  is_whole_ = true;
  _exit(kConcluded);
}

Finding in_child(const Limits& limits, const std::function<void(Board&)>& work,
                 std::string* printed) {
  void* const memory =
      mmap(nullptr, sizeof(Board), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
  if (memory == MAP_FAILED) fail("mmap");
  Board& board = *new (memory) Board;
  g_printed = memfd_create("printed", MFD_CLOEXEC);
  if (g_printed < 0) fail("memfd_create");
  fcntl(g_printed, F_SETFL, O_APPEND);
  signal(SIGINT, [](int) { g_interrupted = 1; });
  signal(SIGTERM, [](int) { g_interrupted = 1; });
  prctl(PR_SET_CHILD_SUBREAPER, 1);
  const pid_t parent = getpid(), child = fork();
  if (child < 0) fail("fork");
  if (child == 0) {
    board.child_ = getpid();
    settle_child(limits, parent);
    work(board);
    _exit(kExited);
  }
  setpgid(child, child);  // by both: whoever is first
  Reaper reaper(child);
  const Ended ended = wait_for(child, limits, board.progress_, board.is_alone_);
  const int status = reaper.reap();
  *printed = read_all(g_printed);
  close(g_printed);

  Finding finding{.verdict = Verdict::crash, .layer = board.layer_, .at = board.at_};
  if (board.is_whole_) {
    finding.verdict = board.verdict_;
    finding.words = board.words_;
    if (board.has_costs_) finding.costs = board.costs_;
    if (board.verdict_ == Verdict::passed) finding.layer = ' ';
  } else if (ended == Ended::still) {
    finding.verdict = Verdict::endless;
    finding.words = board.where() + " does not come back";
  } else if (ended == Ended::late) {
    finding.verdict = Verdict::endless;
    finding.words = fmt::format(
        "all runs together take too long: at most {} s of work, or {} s of sleep, or "
        "a part of both",
        limits.all_busy_s, limits.all_asleep_s);
    finding.at = {};
  } else if (WIFSIGNALED(status)) {
    finding.words = board.where() + " " + text_of_signal(WTERMSIG(status), *printed);
  } else {
    finding.words = board.where() + " ends the program; run() only returns";
  }
  munmap(memory, sizeof(Board));
  return finding;
}

}  // namespace ringlet::learn
