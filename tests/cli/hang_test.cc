// A replica that hangs for ever: the user reads who it is, and the program ends.
#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <chrono>
#include <csignal>
#include <string>
#include <thread>

#include "tests/cli/program.h"
#include "tests/support/files.h"

namespace ringlet::testing {
namespace {

/// A named pipe that takes one page, and that nobody reads.
class FullPipe {
 public:
  explicit FullPipe(const std::string& path) {
    if (::mkfifo(path.c_str(), 0600) == 0) descriptor_ = ::open(path.c_str(), O_RDWR | O_CLOEXEC);
    if (descriptor_ >= 0) ::fcntl(descriptor_, F_SETPIPE_SZ, 1);
  }
  ~FullPipe() {
    if (descriptor_ >= 0) ::close(descriptor_);
  }
  FullPipe(const FullPipe&) = delete;
  FullPipe& operator=(const FullPipe&) = delete;
  bool open() const { return descriptor_ >= 0; }

 private:
  int descriptor_ = -1;
};

TEST(Hang, AReplicaThatNeverEndsDoesNotKeepTheMessageBack) {
  const TemporaryDirectory folder;
  const std::string path = folder / "metrics";
  const FullPipe pipe(path);
  ASSERT_TRUE(pipe.open());
  // Rank 0 writes its metrics until the pipe is full, and then waits for a reader.
  const Outcome outcome = ringlet(quick_train({"--replicas", "2", "--epochs", "1000", "--lr",
                                               "0.001", "--metrics", path, "--comm-timeout", "1"}));
  EXPECT_TRUE(fails_with(
      1, outcome, {"rank 0 never entered", "10 s later still not ended: replica 0 (cpu:0)"}));
}

/// Ctrl-Z and fg. While it is stopped, one replica waits for the other as a rule.
TEST(Hang, AProcessThatWasStoppedAndGoesOnBlamesNobody) {
  using std::chrono::milliseconds;
  Program program(quick_train(
      {"--replicas", "2", "--epochs", "100000", "--lr", "0.001", "--comm-timeout", "1"}));
  ASSERT_TRUE(program.wait_for("epoch   train loss"));
  for (int times = 0; times < 3; ++times) {
    ::kill(program.pid(), SIGSTOP);
    std::this_thread::sleep_for(milliseconds(1500));  // longer than the time-out
    ::kill(program.pid(), SIGCONT);
    std::this_thread::sleep_for(milliseconds(100));
  }
  ::kill(program.pid(), SIGINT);
  const Outcome outcome = program.wait();
  EXPECT_EQ(outcome.code, 128 + SIGINT);
  EXPECT_EQ(outcome.err.find("waited"), std::string::npos) << outcome.err;
}

}  // namespace
}  // namespace ringlet::testing
