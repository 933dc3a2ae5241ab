// Processes that are kept apart share memory all the same: such as must not look at each other, and
// such as do not see each other in /proc. Here they are real ones.
#include <gtest/gtest.h>
#include <sched.h>
#include <sys/prctl.h>
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

/// What each of two processes says: "" if all went well.
std::vector<std::string> two_processes(const std::function<std::string(int process)>& body) {
  std::vector<std::string> said;
  std::array<int, 2> pipes{};
  std::vector<pid_t> children;
  std::vector<int> ends;
  for (int process = 0; process < 2; ++process) {
    if (::pipe(pipes.data()) != 0) return {"pipe", "pipe"};
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

/// Sums in memory that the two reach in place, and through windows. "" where the sums are right.
std::string sum_in_place(int process, const std::string& run) {
  ProcessGroup group({process, 2, run, "test"}, {.timeout_seconds = 20});
  const auto device = in_place_device();
  Communicator communicator(group.transport(process),
                            {.strategy = "two-shot", .timeout_seconds = 20});
  const Tensor reached(communicator.allocator(*device), {30'000}), own(*device, {100});
  for (const Tensor* data : {&reached, &own}) {
    const std::int64_t count = data->view().count();
    std::fill_n(data->f32(), count, static_cast<float>(process + 1));
    communicator.all_reduce(device->communication(), *data, "bucket 0");
    if (std::count(data->f32(), data->f32() + count, 3.0F) != count) return "a sum is wrong";
  }
  group.leave();
  return "";
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
  const auto said = two_processes([&run](int process) -> std::string {
    constexpr uid_t kOrdinary = 65534;  // root may look into everything
    if (::getuid() == 0 && ::setuid(kOrdinary) != 0) return "setuid";
    if (::prctl(PR_SET_DUMPABLE, 0) != 0) return "prctl";
    return sum_in_place(process, run);
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
  const auto said = two_processes([&run](int process) -> std::string {
    if (!enter_pid_namespace()) return kForbidden;
    std::array<int, 2> ends{};
    if (::pipe(ends.data()) != 0) return "pipe";
    if (::fork() == 0) {
      ::prctl(PR_SET_PDEATHSIG, SIGKILL);
      speak(ends[1], [&] { return ::getpid() == 1 ? sum_in_place(process, run) : "not alone"; });
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

}  // namespace
}  // namespace ringlet::comm
