#include "base/processors.h"

#include <sched.h>

#include <algorithm>
#include <cerrno>
#include <cmath>
#include <cstddef>
#include <fstream>
#include <limits>
#include <numeric>
#include <thread>

#include "base/control_groups.h"

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
  double least = kUnlimited;
  for_each_control_group(root, "cpu", [&least](const fs::path& group, GroupVersion version) {
    least = std::min(least,
                     version == GroupVersion::two ? quota_in_cpu_max(group) : quota_in_cfs(group));
  });
  return static_cast<int>(std::clamp<double>(std::ceil(least), 1, kNoQuota));
}

int usable_processors() {
  return std::min(static_cast<int>(allowed_processors().size()), processor_quota());
}

}  // namespace ringlet
