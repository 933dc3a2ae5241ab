// Which processors may be used, by affinity and by the quotas of control groups.
#include "base/processors.h"

#include <gtest/gtest.h>
#include <sched.h>

#include <sstream>
#include <string>
#include <thread>

#include "base/processor_name.h"
#include "tests/support/files.h"

namespace ringlet {
namespace {

namespace fs = std::filesystem;

/// What a process would see of its control groups.
class FakeRoot {
 public:
  /// `groups`: the text of /proc/self/cgroup.
  explicit FakeRoot(const std::string& groups) { put("proc/self/cgroup", groups); }

  FakeRoot& put(const std::string& name, const std::string& text) {
    fs::create_directories((folder_ / name).parent_path());
    testing::write_file(folder_ / name, text);
    return *this;
  }
  FakeRoot& group(const std::string& name, const std::string& text) {
    return put("sys/fs/cgroup/" + name, text);
  }
  int quota() const { return processor_quota(folder_.path()); }

 private:
  testing::TemporaryDirectory folder_;
};

TEST(ProcessorQuota, IsRoundedUp) {
  const auto quota = [](const std::string& text) {
    return FakeRoot("0::/user\n").group("user/cpu.max", text).quota();
  };
  EXPECT_EQ(quota("200000 100000\n"), 2);
  EXPECT_EQ(quota("150000 100000\n"), 2);
  EXPECT_EQ(quota("10000 100000\n"), 1);
  EXPECT_EQ(quota("max 100000\n"), kNoQuota);
  EXPECT_EQ(quota(""), kNoQuota);
  EXPECT_EQ(quota("0 0\n"), kNoQuota);
}

TEST(ProcessorQuota, IsTheTightestOfAllGroupsAround) {
  FakeRoot root("0::/outer/inner\n");
  root.group("outer/inner/cpu.max", "max 100000\n").group("outer/cpu.max", "300000 100000\n");
  EXPECT_EQ(root.quota(), 3);
  EXPECT_EQ(root.group("cpu.max", "100000 100000\n").quota(), 1);
  EXPECT_EQ(root.group("outer/inner/cpu.max", "50000 100000\n").quota(), 1);
}

TEST(ProcessorQuota, IsThatOfTheMountWhereTheGroupIsNamedAsOutside) {
  FakeRoot docker("0::/docker/0123\n");
  EXPECT_EQ(docker.group("cpu.max", "400000 100000\n").quota(), 4);
  FakeRoot above("0::/../..\n");
  EXPECT_EQ(above.group("cpu.max", "400000 100000\n").quota(), 4);
}

TEST(ProcessorQuota, KnowsVersionOne) {
  const std::string groups = "9:name=systemd:/\n4:cpu,cpuacct:/user\n3:cpuset:/other\n0::/\n";
  FakeRoot root(groups);
  root.group("cpu,cpuacct/user/cpu.cfs_quota_us", "-1\n");
  root.group("cpu,cpuacct/user/cpu.cfs_period_us", "100000\n");
  EXPECT_EQ(root.quota(), kNoQuota);
  EXPECT_EQ(root.group("cpu,cpuacct/user/cpu.cfs_quota_us", "250000\n").quota(), 3);
  // By the controller's own name, and only by that controller's group.
  FakeRoot other("5:cpu:/user\n4:cpuacct:/user\n");
  other.group("cpuacct/user/cpu.cfs_quota_us", "100000\n");
  other.group("cpuacct/user/cpu.cfs_period_us", "100000\n");
  EXPECT_EQ(other.quota(), kNoQuota);
  other.group("cpu/user/cpu.cfs_quota_us", "200000\n");
  EXPECT_EQ(other.group("cpu/user/cpu.cfs_period_us", "100000\n").quota(), 2);
}

TEST(ProcessorQuota, IsNoneWhereNothingIsKnown) {
  const testing::TemporaryDirectory empty;
  EXPECT_EQ(processor_quota(empty.path()), kNoQuota);
  EXPECT_EQ(FakeRoot("nonsense\n:\n0:\n").quota(), kNoQuota);
}

TEST(UsableProcessors, AreThoseOfTheCallingThread) {
  EXPECT_GE(usable_processors(), 1);
  EXPECT_LE(usable_processors(), static_cast<int>(allowed_processors().size()));
  const int last = allowed_processors().back();
  std::thread([last] {
    cpu_set_t one;
    CPU_ZERO(&one);
    CPU_SET(static_cast<std::size_t>(last), &one);
    ASSERT_EQ(sched_setaffinity(0, sizeof one, &one), 0);
    EXPECT_EQ(allowed_processors(), std::vector<int>{last});
    EXPECT_EQ(usable_processors(), 1);
  }).join();
}

std::string name_in(const std::string& cpuinfo) {
  std::istringstream file(cpuinfo);
  return processor_name_in(file);
}

TEST(ProcessorName, IsTheFirstOne) {
  EXPECT_EQ(name_in("processor\t: 0\nmodel name\t: A 1\nprocessor\t: 1\nmodel name\t: B 2\n"),
            "A 1");
}

TEST(ProcessorName, IsAnArmsNumbers) {
  EXPECT_EQ(name_in("processor\t: 0\nCPU implementer\t: 0x41\nCPU part\t: 0xd0c\n"
                    "processor\t: 1\nCPU implementer\t: 0x41\nCPU part\t: 0xd05\n"),
            "ARM 0x41-0xd0c");
}

TEST(ProcessorName, IsAWordWhereNothingIsTold) { EXPECT_EQ(name_in("hwcap\t: 1\n"), "processor"); }

}  // namespace
}  // namespace ringlet
