#include "app/cli/own_program.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/auxv.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <csignal>
#include <cstdlib>
#include <string_view>
#include <system_error>

#include "app/cli/error_exit.h"
#include "base/error.h"

namespace ringlet::app {

namespace {

constexpr int kNotFound = 127;  // what shells say of a program that is not there

[[noreturn]] void become(pid_t parent, const std::string& program, std::vector<char*>& argv,
                         int output) {
  ::prctl(PR_SET_PDEATHSIG, SIGKILL);
  if (::getppid() != parent) ::_exit(kNotFound);  // it died before the line above
  ::setpgid(0, 0);
  const int nothing = ::open("/dev/null", O_RDONLY | O_CLOEXEC);
  if (nothing >= 0) ::dup2(nothing, STDIN_FILENO);
  ::dup2(output, STDOUT_FILENO);
  ::dup2(output, STDERR_FILENO);
  ::execv(program.c_str(), argv.data());
  ::_exit(kNotFound);
}

}  // namespace

std::string own_program() {
  constexpr const char* kOwn = "/proc/self/exe";
  if (::access(kOwn, X_OK) == 0) return kOwn;
  // NOLINTNEXTLINE(performance-no-int-to-ptr): so the kernel gives it
  const auto* name = reinterpret_cast<const char*>(::getauxval(AT_EXECFN));
  return name == nullptr ? kOwn : name;
}

ChildProgram::ChildProgram(const std::vector<std::string>& words,
                           const std::vector<std::string>& variables, const Descriptor& output) {
  const std::string program = own_program();
  std::vector<std::string> all{"ringlet"};
  all.insert(all.end(), words.begin(), words.end());
  std::vector<char*> argv;
  for (std::string& word : all) argv.push_back(word.data());
  argv.push_back(nullptr);
  std::vector<std::string> set = variables;
  const pid_t parent = ::getpid();
  pid_ = ::fork();
  if (pid_ == 0) {
    for (std::string& variable : set) ::putenv(variable.data());  // NOLINT: one thread is here
    become(parent, program, argv, output.get());
  }
  if (pid_ < 0) {
    throw Error(fmt::format("no process can be started: {}; end others",
                            std::generic_category().message(errno)));
  }
}

ChildProgram::~ChildProgram() {
  if (pid_ < 0) return;
  ::kill(pid_, SIGKILL);
  ::waitpid(pid_, nullptr, 0);
}

std::optional<int> ChildProgram::ended() {
  int status = 0;
  if (pid_ < 0 || ::waitpid(pid_, &status, WNOHANG) != pid_) return {};
  pid_ = -1;
  return WIFSIGNALED(status) ? kInterrupted + WTERMSIG(status) : WEXITSTATUS(status);
}

void ChildProgram::send(int signal) const {
  if (pid_ < 0) return;
  ::kill(pid_, signal);
  ::kill(pid_, SIGCONT);
}

std::string error_in(std::istream& printed) {
  constexpr std::string_view kFront = "ringlet: error: ";
  std::string line, last;
  while (std::getline(printed, line)) {
    if (line.starts_with(kFront)) last = line.substr(kFront.size());
  }
  return last;
}

}  // namespace ringlet::app
