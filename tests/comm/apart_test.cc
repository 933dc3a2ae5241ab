// Processes that are kept apart share memory all the same: such as must not look at each other,
// such as do not see each other in /proc, and such as may have few files open. Here they are real
// ones.
#include <gtest/gtest.h>
#include <sched.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <csignal>
#include <fstream>
#include <functional>
#include <string>
#include <vector>

#include "comm/communicator.h"
#include "kernels/memory.h"
#include "tests/comm/processes.h"

namespace ringlet::comm {
namespace {

constexpr unsigned kLongest = 60;  // seconds
constexpr const char* kForbidden = "not permitted here";

/// The child's side of fork(): writes what `body` says, or throws, and ends.
[[noreturn]] void speak(int pipe, const std::function<std::string()>& body) {
  ::alarm(kLongest);
  std::string said;
  try {
    said = body();
  } catch (const std::exception& error) {
    said = error.what();
  }
  const ssize_t written = ::write(pipe, said.data(), said.size());
  ::_exit(written == static_cast<ssize_t>(said.size()) ? 0 : 1);
}

/// What each of `count` processes says: "" if all went well.
std::vector<std::string> in_processes(int count,
                                      const std::function<std::string(int process)>& body) {
  std::vector<std::string> said;
  std::array<int, 2> pipes{};
  std::vector<pid_t> children;
  std::vector<int> ends;
  for (int process = 0; process < count; ++process) {
    if (::pipe(pipes.data()) != 0) return {"pipe"};
    children.push_back(::fork());
    if (children.back() == 0) speak(pipes[1], [&] { return body(process); });
    ::close(pipes[1]);
    ends.push_back(pipes[0]);
  }
  for (std::size_t i = 0; i < ends.size(); ++i) {
    std::string& text = said.emplace_back();
    char letter = 0;
    while (::read(ends[i], &letter, 1) == 1) text += letter;
    ::close(ends[i]);
    int status = 0;
    ::waitpid(children[i], &status, 0);
    if (!WIFEXITED(status) || WEXITSTATUS(status) != 0) text += " (ended badly)";
  }
  return said;
}

/// Sums in memory that all reach in place, and through windows. "" where the sums are right.
std::string sum_in_place(int process, int processes, const std::string& run) {
  ProcessGroup group({process, processes, run, "test"}, {.timeout_seconds = 20});
  const auto device = in_place_device();
  Communicator communicator(group.transport(process),
                            {.strategy = "two-shot", .timeout_seconds = 20});
  const Tensor reached(communicator.allocator(*device), {30'000}), own(*device, {100});
  for (const Tensor* data : {&reached, &own}) {
    const std::int64_t count = data->view().count();
    std::fill_n(data->f32(), count, static_cast<float>(process + 1));
    communicator.all_reduce(device->communication(), *data, "bucket 0");
    const int whole = processes * (processes + 1) / 2;
    const auto sum = static_cast<float>(whole);
    if (std::count(data->f32(), data->f32() + count, sum) != count) return "a sum is wrong";
  }
  group.leave();
  return "";
}

bool become_ordinary() {
  constexpr uid_t kOrdinary = 65534;
  return ::getuid() != 0 || ::setuid(kOrdinary) == 0;
}

class Apart : public testing::Test {
 protected:
  void SetUp() override {
#if defined(__SANITIZE_THREAD__)
    GTEST_SKIP() << "the thread sanitizer lets no child of a process with threads have its own";
#endif
  }
};

TEST_F(Apart, ProcessesThatNobodyMayLookInto) {
  const std::string run = new_run();
  const auto said = in_processes(2, [&run](int process) -> std::string {
    if (!become_ordinary()) return "setuid";  // root may look into everything
    if (::prctl(PR_SET_DUMPABLE, 0) != 0) return "prctl";
    return sum_in_place(process, 2, run);
  });
  EXPECT_EQ(said, (std::vector<std::string>{"", ""}));
}

/// Lets the next child begin a PID namespace; false where this process may not.
bool enter_pid_namespace() {
  const uid_t user = ::getuid();
  if (::unshare(CLONE_NEWPID) == 0) return true;
  if (::unshare(CLONE_NEWUSER | CLONE_NEWPID) != 0) return false;
  std::ofstream("/proc/self/uid_map") << user << " " << user << " 1";
  return ::getuid() == user;
}

TEST_F(Apart, ProcessesOfDifferentPidNamespaces) {
  const std::string run = new_run();
  const auto said = in_processes(2, [&run](int process) -> std::string {
    if (!enter_pid_namespace()) return kForbidden;
    std::array<int, 2> ends{};
    if (::pipe(ends.data()) != 0) return "pipe";
    if (::fork() == 0) {
      ::prctl(PR_SET_PDEATHSIG, SIGKILL);
      speak(ends[1], [&] { return ::getpid() == 1 ? sum_in_place(process, 2, run) : "not alone"; });
    }
    ::close(ends[1]);
    std::string text;
    char letter = 0;
    while (::read(ends[0], &letter, 1) == 1) text += letter;
    int status = 0;
    ::wait(&status);
    return status == 0 ? text : text + " (ended badly)";
  });
  if (said[0] == kForbidden) GTEST_SKIP() << "namespaces are not permitted here";
  EXPECT_EQ(said, (std::vector<std::string>{"", ""}));
}

/// What twelve processes say that may have so few files open, of which they may not have more than
/// `most` either. 132 descriptors are on their way at once; root may have any number there.
std::vector<std::string> with_few_files(rlim_t most) {
  const std::string run = new_run();
  return in_processes(12, [&](int process) -> std::string {
    if (!become_ordinary()) return "setuid";
    const rlimit few{64, most};
    if (::setrlimit(RLIMIT_NOFILE, &few) != 0) return kForbidden;
    return sum_in_place(process, 12, run);
  });
}

TEST_F(Apart, ProcessesOfFewOpenFiles) {
  const auto said = with_few_files(1024);
  if (said[0] == kForbidden) GTEST_SKIP() << "so many files may not be open";
  EXPECT_EQ(said, std::vector<std::string>(12, ""));
}

TEST_F(Apart, SaysThatMoreFilesHaveToBeAllowed) {
  const auto said = with_few_files(64);
  const auto tells = [](const std::string& text) {
    return text.find(
               "as many files are on their way between your processes as one may have open; "
               "allow more (ulimit -n), or use --transport gloo") != std::string::npos;
  };
  EXPECT_TRUE(std::ranges::any_of(said, tells)) << testing::PrintToString(said);
}

}  // namespace
}  // namespace ringlet::comm
