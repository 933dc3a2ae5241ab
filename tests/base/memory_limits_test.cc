// What a process may have: the machine's memory, or what its control groups leave of it.
#include "base/memory_limits.h"

#include <gtest/gtest.h>

#include "tests/support/files.h"

namespace ringlet {
namespace {

namespace fs = std::filesystem;

/// A machine's /proc and /sys, as far as they are read.
class Memory : public ::testing::Test {
 protected:
  void put(const std::string& name, const std::string& text) const {
    fs::create_directories((root_ / name).parent_path());
    testing::write_file(root_ / name, text);
  }
  MemoryLimits limits() const { return memory_limits(root_.path()); }

  testing::TemporaryDirectory root_;
};

TEST_F(Memory, IsTheMachinesWhereNothingLimitsIt) {
  EXPECT_EQ(limits().bytes, memory_bytes());
  put("proc/meminfo", "MemTotal:  9000 kB\nMemFree:  10 kB\nMemAvailable:    20 kB\n");
  put("proc/self/cgroup", "0::/\n");
  put("sys/fs/cgroup/memory.max", "max\n");
  EXPECT_EQ(limits().bytes, memory_bytes());
  EXPECT_EQ(limits().free, 20U * 1024);
}

TEST_F(Memory, IsThatOfTheNarrowestGroup) {
  put("proc/meminfo", "MemAvailable: 99999999 kB\n");
  put("proc/self/cgroup", "0::/job/step\n");
  put("sys/fs/cgroup/job/step/memory.max", "900000\n");
  put("sys/fs/cgroup/job/step/memory.current", "100000\n");
  EXPECT_EQ(limits().bytes, 900'000U);
  EXPECT_EQ(limits().free, 800'000U);
  put("sys/fs/cgroup/job/memory.max", "500000\n");
  put("sys/fs/cgroup/job/memory.current", "300000\n");
  put("sys/fs/cgroup/job/memory.stat", "anon 1\ninactive_file 50000\nactive_file 7\n");
  EXPECT_EQ(limits().bytes, 500'000U);
  EXPECT_EQ(limits().free, 250'000U);  // files' pages can be given up
}

TEST_F(Memory, IsLimitedByTheFirstVersionOfGroupsToo) {
  put("proc/self/cgroup", "7:cpu,cpuacct:/a\n4:memory:/docker/4711\n0::/\n");
  put("sys/fs/cgroup/memory/memory.limit_in_bytes",
      "700000\n");  // the container's own, at the top
  put("sys/fs/cgroup/memory/memory.usage_in_bytes", "600000\n");
  put("sys/fs/cgroup/memory/memory.stat", "total_inactive_file 100000\n");
  EXPECT_EQ(limits().bytes, 700'000U);
  EXPECT_EQ(limits().free, 200'000U);
}

TEST_F(Memory, OfThisMachineIsThere) {
  EXPECT_GT(memory_limits().free, 0U);
  EXPECT_LE(usable_memory(), memory_bytes());
}

}  // namespace
}  // namespace ringlet
