#include "tests/cli/program.h"

#include <fcntl.h>
#include <poll.h>
#include <pty.h>
#include <sys/ioctl.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <chrono>
#include <csignal>
#include <fstream>
#include <regex>
#include <stdexcept>

#include "tests/support/testdata.h"

namespace ringlet::testing {

namespace {

using Clock = std::chrono::steady_clock;

constexpr int kNotStarted = 126;

struct winsize terminal_of(int columns) {
  return {40, static_cast<unsigned short>(columns), 0, 0};
}

int milliseconds_until(Clock::time_point end) {
  const auto left = std::chrono::duration_cast<std::chrono::milliseconds>(end - Clock::now());
  return static_cast<int>(std::clamp<std::int64_t>(left.count(), 0, 1000));
}

Clock::time_point after(double seconds) {
  return Clock::now() +
         std::chrono::duration_cast<Clock::duration>(std::chrono::duration<double>(seconds));
}

void limit(decltype(RLIMIT_AS) resource, long most) {
  const struct rlimit both { static_cast<rlim_t>(most), static_cast<rlim_t>(most) };
  if (most >= 0) ::setrlimit(resource, &both);
}

/// The child's side of fork(): never returns.
[[noreturn]] void become_program(std::string program, const Arguments& arguments,
                                 const ProgramOptions& options) {
  ::setenv("RINGLET_NO_OUT", "1", 1);  // NOLINT(concurrency-mt-unsafe): one thread
  for (const auto& [name, value] : options.environment) {
    ::setenv(name.c_str(), value.c_str(), 1);  // NOLINT(concurrency-mt-unsafe): one thread
  }
  if (!options.folder.empty() && ::chdir(options.folder.c_str()) != 0) ::_exit(kNotStarted);
  // Who runs the tests in the background ignores some of these.
  for (const int signal : {SIGINT, SIGHUP, SIGQUIT}) std::signal(signal, SIG_DFL);
  limit(RLIMIT_FSIZE, options.file_size_limit);
  limit(RLIMIT_AS, options.address_space_limit);
  // Else OpenBLAS starts a thread before main(). While that makes itself an arena, which takes 128
  // MiB of addresses for a moment, CUDA's runtime registers kernels, and dies of a malloc that
  // fails.
  if (options.address_space_limit >= 0) {
    ::setenv("OPENBLAS_NUM_THREADS", "1", 1);  // NOLINT(concurrency-mt-unsafe): one thread
  }
  std::vector<char*> argv{program.data()};
  Arguments copies = arguments;
  for (std::string& argument : copies) argv.push_back(argument.data());
  argv.push_back(nullptr);
  ::execv(program.c_str(), argv.data());
  ::_exit(kNotStarted);
}

/// Appends what is there to `text`; closes `descriptor` at its end.
void read_into(std::string& text, int& descriptor) {
  std::array<char, 4096> buffer{};
  const ssize_t got = ::read(descriptor, buffer.data(), buffer.size());
  if (got > 0) {
    text.append(buffer.data(), static_cast<std::size_t>(got));
  } else if (got == 0 || errno != EINTR) {  // a terminal whose program has gone gives EIO
    ::close(descriptor);
    descriptor = -1;
  }
}

}  // namespace

Program::Program(const Arguments& arguments, const ProgramOptions& options) {
  if (options.terminal) {
    start_on_terminal(arguments, options);
  } else {
    start_with_pipes(built("bin/ringlet"), arguments, options);
  }
}

Program::Program(const ShellLine& line) { start_with_pipes("/bin/sh", {"-c", line.text}, {}); }

Program::~Program() {
  if (pid_ > 0) {
    ::kill(pid_, SIGKILL);
    ::waitpid(pid_, nullptr, 0);
  }
  if (out_ >= 0) ::close(out_);
  if (err_ >= 0) ::close(err_);
}

void Program::start_with_pipes(const std::string& program, const Arguments& arguments,
                               const ProgramOptions& options) {
  int out[2];
  int err[2];
  if (::pipe2(out, O_CLOEXEC) != 0 || ::pipe2(err, O_CLOEXEC) != 0) {
    throw std::runtime_error("pipe2 failed");
  }
  pid_ = ::fork();
  if (pid_ == 0) {
    ::dup2(out[1], STDOUT_FILENO);
    ::dup2(err[1], STDERR_FILENO);
    become_program(program, arguments, options);
  }
  ::close(out[1]);
  ::close(err[1]);
  out_ = out[0];
  err_ = err[0];
}

void Program::start_on_terminal(const Arguments& arguments, const ProgramOptions& options) {
  const struct winsize size = terminal_of(options.columns);
  pid_ = ::forkpty(&out_, nullptr, nullptr, &size);
  if (pid_ == 0) become_program(built("bin/ringlet"), arguments, options);
  if (pid_ < 0) throw std::runtime_error("forkpty failed");
}

void Program::read_some(int timeout_ms) {
  std::array<struct pollfd, 2> waiting{{{out_, POLLIN, 0}, {err_, POLLIN, 0}}};
  if (::poll(waiting.data(), waiting.size(), timeout_ms) <= 0) return;
  if (waiting[0].revents != 0) read_into(outcome_.out, out_);
  if (waiting[1].revents != 0) read_into(outcome_.err, err_);
}

bool Program::wait_for(const std::string& text, double seconds) {
  return wait_until([&](const std::string& out) { return out.find(text) != std::string::npos; },
                    seconds);
}

// `done` may look at files, too, of which the output says nothing.
bool Program::wait_until(const std::function<bool(const std::string& out)>& done, double seconds) {
  constexpr int kLook = 5;  // ms
  const auto end = after(seconds);
  while (!done(outcome_.out)) {
    if (!reading() || Clock::now() >= end) return false;
    read_some(std::min(milliseconds_until(end), kLook));
  }
  return true;
}

void Program::send(int signal) const { ::kill(pid_, signal); }

void Program::resize(int columns) const {
  const struct winsize size = terminal_of(columns);
  ::ioctl(out_, TIOCSWINSZ, &size);
}

Outcome Program::wait(double seconds) {
  const auto end = after(seconds);
  while (reading() && Clock::now() < end) read_some(milliseconds_until(end));
  if (reading()) {
    outcome_.timed_out = true;
    ::kill(pid_, SIGKILL);
  }
  int status = 0;
  ::waitpid(pid_, &status, 0);
  pid_ = -1;
  if (WIFEXITED(status)) outcome_.code = WEXITSTATUS(status);
  if (WIFSIGNALED(status)) outcome_.signal = WTERMSIG(status);
  return outcome_;
}

std::vector<pid_t> children_of(pid_t parent) {
  std::ifstream file("/proc/" + std::to_string(parent) + "/task/" + std::to_string(parent) +
                     "/children");
  std::vector<pid_t> pids;
  for (pid_t pid = 0; file >> pid;) pids.push_back(pid);
  return pids;
}

Outcome ringlet(const Arguments& arguments, const ProgramOptions& options) {
  return Program(arguments, options).wait();
}

namespace {

void list_commands(const Arguments& above, std::vector<Arguments>& all) {
  static const std::regex kRow("\n  ([a-z][a-z-]*)  ");
  const std::string help = ringlet(above + Arguments{"--help"}).out;
  const auto begin = help.find("\nCommands:\n");
  if (begin == std::string::npos) return;
  const std::string rows = help.substr(begin);
  for (std::sregex_iterator row(rows.begin(), rows.end(), kRow), end; row != end; ++row) {
    const Arguments command = above + Arguments{(*row)[1]};  // no reference into what grows
    all.push_back(command);
    list_commands(command, all);
  }
}

}  // namespace

const std::vector<Arguments>& all_commands() {
  static const std::vector<Arguments> all = [] {
    std::vector<Arguments> commands;
    list_commands({}, commands);
    return commands;
  }();
  return all;
}

Arguments operator+(Arguments base, const Arguments& more) {
  base.insert(base.end(), more.begin(), more.end());
  return base;
}

Arguments quick_train(const Arguments& changes) {
  Arguments line{
      "train", "--data",  "synthetic", "--synthetic-train", "256", "--epochs", "1", "--batch-size",
      "64",    "--model", "mlp",       "--synthetic-test",  "64"};
  for (std::size_t i = 0; i < changes.size(); ++i) {
    const auto own = std::find(line.begin(), line.end(), changes[i]);
    if (own == line.end() || !changes[i].starts_with("--")) {
      line.push_back(changes[i]);
    } else {
      *(own + 1) = changes[++i];
    }
  }
  return line;
}

namespace {

std::string all_of(const Outcome& outcome) {
  return "exit code " + std::to_string(outcome.code) + ", signal " +
         std::to_string(outcome.signal) + (outcome.timed_out ? ", TIMED OUT" : "") +
         "\nstdout: " + outcome.out + "\nstderr: " + outcome.err;
}

}  // namespace

::testing::AssertionResult holds(const std::string& text,
                                 std::initializer_list<std::string> parts) {
  for (const std::string& part : parts) {
    if (text.find(part) == std::string::npos) {
      return ::testing::AssertionFailure() << "'" << part << "' is not in: " << text;
    }
  }
  return ::testing::AssertionSuccess();
}

::testing::AssertionResult fails_with(int code, const Outcome& outcome,
                                      std::initializer_list<std::string> parts) {
  if (outcome.timed_out || outcome.code != code) {
    return ::testing::AssertionFailure()
           << "expected exit code " << code << "; " << all_of(outcome);
  }
  const bool one_line =
      std::count(outcome.err.begin(), outcome.err.end(), '\n') == 1 && outcome.err.ends_with('\n');
  if (!one_line || !outcome.err.starts_with("ringlet: error: ")) {
    return ::testing::AssertionFailure() << "not one line of error; " << all_of(outcome);
  }
  return holds(outcome.err, parts);
}

::testing::AssertionResult succeeds(const Outcome& outcome) {
  if (!outcome.timed_out && outcome.code == 0 && outcome.err.empty()) {
    return ::testing::AssertionSuccess();
  }
  return ::testing::AssertionFailure() << all_of(outcome);
}

}  // namespace ringlet::testing
