#include "kernels/processors.h"

#include <sched.h>

#include <algorithm>
#include <cerrno>
#include <cmath>
#include <cstddef>
#include <fstream>
#include <limits>
#include <numeric>
#include <string>
#include <thread>

namespace ringlet {

namespace {

namespace fs = std::filesystem;

constexpr double kUnlimited = std::numeric_limits<double>::infinity();

double processors_of(double microseconds, double period) {
  return microseconds > 0 && period > 0 ? microseconds / period : kUnlimited;
}

/// Version 2: "150000 100000", or "max 100000".
double quota_in_cpu_max(const fs::path& group) {
  std::ifstream file(group / "cpu.max");
  double microseconds = 0, period = 0;
  return file >> microseconds >> period ? processors_of(microseconds, period) : kUnlimited;
}

/// Version 1: two files; -1 in the first is no limit.
double quota_in_cfs(const fs::path& group) {
  std::ifstream quota(group / "cpu.cfs_quota_us"), periods(group / "cpu.cfs_period_us");
  double microseconds = 0, period = 0;
  return quota >> microseconds && periods >> period ? processors_of(microseconds, period)
                                                    : kUnlimited;
}

/// The tightest of a group and those around it. Groups that are not there have no limit: in a
/// container its own group may be the mount, and yet be called by its name outside.
template <class Read>
double tightest(const fs::path& mount, const fs::path& group, Read read) {
  fs::path inside = group.lexically_normal().relative_path();
  double least = read(mount / inside);
  while (!inside.empty()) {
    inside = inside.parent_path();
    least = std::min(least, read(mount / inside));
  }
  return least;
}

bool lists(const std::string& controllers, const std::string& one) {
  return ("," + controllers + ",").find("," + one + ",") != std::string::npos;
}

/// By one line of /proc/self/cgroup, "4:cpu,cpuacct:/user" or "0::/user".
double quota_by(const std::string& line, const fs::path& mounts) {
  const std::size_t first = line.find(':'), second = line.find(':', first + 1);
  if (second == std::string::npos) return kUnlimited;
  const std::string controllers = line.substr(first + 1, second - first - 1);
  const std::string group = line.substr(second + 1);
  if (controllers.empty()) {  // the second place is for both versions beside each other
    return std::min(tightest(mounts, group, quota_in_cpu_max),
                    tightest(mounts / "unified", group, quota_in_cpu_max));
  }
  if (!lists(controllers, "cpu")) return kUnlimited;
  return std::min(tightest(mounts / "cpu", group, quota_in_cfs),
                  tightest(mounts / controllers, group, quota_in_cfs));
}

}  // namespace

std::vector<int> allowed_processors() {
  std::vector<int> numbers;
  for (std::size_t sets = 1; sets <= 1024; sets *= 2) {  // one holds 1024 processors
    std::vector<cpu_set_t> allowed(sets);
    const std::size_t bytes = sets * sizeof(cpu_set_t);
    if (sched_getaffinity(0, bytes, allowed.data()) != 0) {
      if (errno == EINVAL) continue;  // the kernel's set is longer
      break;
    }
    for (int number = 0; number < static_cast<int>(sets) * CPU_SETSIZE; ++number) {
      if (CPU_ISSET_S(static_cast<std::size_t>(number), bytes, allowed.data())) {
        numbers.push_back(number);
      }
    }
    return numbers;
  }
  numbers.resize(std::max(1U, std::thread::hardware_concurrency()));
  std::iota(numbers.begin(), numbers.end(), 0);
  return numbers;
}

int processor_quota(const fs::path& root) {
  std::ifstream groups(root / "proc/self/cgroup");
  double least = kUnlimited;
  for (std::string line; std::getline(groups, line);) {
    least = std::min(least, quota_by(line, root / "sys/fs/cgroup"));
  }
  return static_cast<int>(std::clamp<double>(std::ceil(least), 1, kNoQuota));
}

int usable_processors() {
  return std::min(static_cast<int>(allowed_processors().size()), processor_quota());
}

}  // namespace ringlet
