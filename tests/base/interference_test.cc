// What a thread sees of other work on its machine, in files of the kernel that were made up for it,
// and from a busy loop on its own processor.
#include "base/interference.h"

#include <gtest/gtest.h>
#include <sched.h>

#include <algorithm>
#include <atomic>
#include <filesystem>
#include <string>
#include <thread>

#include "base/trace.h"
#include "tests/support/files.h"

namespace ringlet {
namespace {

class FakeProc {
 public:
  void put(const std::string& waited_ns, const std::string& stat) {
    std::filesystem::create_directories(folder_ / "proc/thread-self");
    testing::write_file(folder_ / "proc/thread-self/schedstat", "900 " + waited_ns + " 7\n");
    testing::write_file(folder_ / "proc/stat", stat);
  }
  std::filesystem::path root() const { return folder_.path(); }

 private:
  testing::TemporaryDirectory folder_;
};

TEST(Interference, IsReadFromTheKernelsFiles) {
  FakeProc proc;
  proc.put("1000000000", "cpu  100 10 20 50 3 4 5 8 60 2\ncpu0 1 2\n");
  const InterferenceWatch watch(InterferenceWatch::Of::thread_and_machine, proc.root());
  const InterferenceWatch mine(InterferenceWatch::Of::thread, proc.root());
  proc.put("1500000000", "cpu  150 10 30 80 3 4 5 18 99 9\ncpu0 1 2\n");
  const Interference seen = watch.seen();
  EXPECT_DOUBLE_EQ(seen.waited, 0.5);
  EXPECT_EQ(seen.ticks, 50 + 10 + 30 + 10);  // guests are within user and nice
  EXPECT_EQ(seen.stolen, 10);
  EXPECT_DOUBLE_EQ(seen.stolen_share(), 0.1);
  EXPECT_GT(seen.seconds, 0);
  EXPECT_DOUBLE_EQ(mine.seen().waited, 0.5);
  EXPECT_EQ(mine.seen().ticks, 0);
}

TEST(Interference, IsNotKnownWhereTheKernelDoesNotTell) {
  const testing::TemporaryDirectory empty;
  const Interference seen =
      InterferenceWatch(InterferenceWatch::Of::thread_and_machine, empty.path()).seen();
  EXPECT_FALSE(seen.knows_waits());
  EXPECT_EQ(seen.waited_share(), 0);
  EXPECT_EQ(seen.stolen_share(), 0);
  EXPECT_EQ(in_words(seen, "the thread's"), "");
}

TEST(Interference, AddsUp) {
  Interference sum{.seconds = 1, .waited = 0.2, .switches = 3, .stolen = 1, .ticks = 100};
  sum += {.seconds = 3, .waited = 0.2, .switches = 4, .stolen = 7, .ticks = 100};
  EXPECT_DOUBLE_EQ(sum.waited_share(), 0.1);
  EXPECT_EQ(sum.switches, 7);
  EXPECT_DOUBLE_EQ(sum.stolen_share(), 0.04);
  sum += {.seconds = 1, .waited = -1};
  EXPECT_FALSE(sum.knows_waits());
}

TEST(Interference, OfSeveralThreadsIsThatOfTheWorst) {
  const Interference threads[] = {{.seconds = 1, .waited = 0.1, .stolen = 6, .ticks = 60},
                                  {.seconds = 2, .waited = 0.4, .switches = 5},
                                  {.seconds = 1, .waited = -1, .switches = 9}};
  const Interference worst = worst_of(threads);
  EXPECT_DOUBLE_EQ(worst.waited_share(), 0.2);
  EXPECT_EQ(worst.switches, 5);
  EXPECT_DOUBLE_EQ(worst.stolen_share(), 0.1);
}

TEST(Interference, IsToldWhereItIsMuch) {
  EXPECT_EQ(in_words({.seconds = 1, .waited = 0.09, .stolen = 4, .ticks = 100}, "a rank's"), "");
  EXPECT_EQ(in_words({.seconds = 1, .stolen = 2, .ticks = 10}, "a rank's"), "");
  EXPECT_EQ(in_words({.seconds = 2, .waited = 0.68, .stolen = 12, .ticks = 100}, "a rank's"),
            "other work had a rank's processor for 34 % of the time, the machine's host took 12 % "
            "of the processors' time");
}

void spin_for(double seconds) {
  const std::int64_t end = now_ns() + static_cast<std::int64_t>(1e9 * seconds);
  while (now_ns() < end) {
  }
}

TEST(Interference, OfABusyLoopOnTheSameProcessorIsSeen) {
  const InterferenceWatch here;
  if (!here.seen().knows_waits()) GTEST_SKIP() << "this kernel counts no waits";
  cpu_set_t allowed, one;
  sched_getaffinity(0, sizeof allowed, &allowed);
  int processor = 0;
  while (!CPU_ISSET(processor, &allowed)) ++processor;
  CPU_ZERO(&one);
  CPU_SET(processor, &one);
  Interference seen;
  std::thread measured([&] {
    sched_setaffinity(0, sizeof one, &one);
    std::atomic<bool> over{false};
    std::thread other([&] {  // on the same processor: threads inherit it
      while (!over) {
      }
    });
    const InterferenceWatch watch;
    spin_for(0.2);
    seen = watch.seen();
    over = true;
    other.join();
  });
  measured.join();
  EXPECT_GE(seen.waited_share(), kMuchWaited);
  EXPECT_GE(seen.switches, 1);
}

}  // namespace
}  // namespace ringlet
