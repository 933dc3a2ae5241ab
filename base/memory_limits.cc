#include "base/memory_limits.h"

#include <unistd.h>

#include <algorithm>
#include <fstream>
#include <limits>
#include <optional>
#include <sstream>
#include <string>

#include "base/control_groups.h"

namespace ringlet {

namespace {

namespace fs = std::filesystem;

/// What a version of control groups calls its files.
struct GroupFiles {
  const char* limit;
  const char* used;
  const char* idle;  // in memory.stat: files' pages that can be given up
};
constexpr GroupFiles kVersion1{"memory.limit_in_bytes", "memory.usage_in_bytes",
                               "total_inactive_file"};
constexpr GroupFiles kVersion2{"memory.max", "memory.current", "inactive_file"};

/// The number in the file; nothing where there is none, as in "max".
std::optional<std::uint64_t> number_in(const fs::path& file) {
  std::ifstream stream(file);
  std::uint64_t number = 0;
  if (stream >> number) return number;
  return {};
}

/// The number behind `name` in a file of names and numbers, or 0.
std::uint64_t number_of(const fs::path& file, const std::string& name) {
  std::ifstream stream(file);
  for (std::string line, word; std::getline(stream, line);) {
    std::istringstream words(line);
    std::uint64_t number = 0;
    if (words >> word && word == name && words >> number) return number;
  }
  return 0;
}

/// Narrows `limits` by the group in `folder`, if it has a limit.
void narrow(const fs::path& folder, const GroupFiles& files, MemoryLimits& limits) {
  const std::optional<std::uint64_t> limit = number_in(folder / files.limit);
  if (!limit || *limit >= limits.bytes) return;
  limits.bytes = *limit;
  const std::uint64_t used = number_in(folder / files.used).value_or(0);
  const std::uint64_t idle = std::min(used, number_of(folder / "memory.stat", files.idle));
  limits.free = std::min(limits.free, *limit - std::min(*limit, used - idle));
}

}  // namespace

std::uint64_t memory_bytes() {
  const long pages = sysconf(_SC_PHYS_PAGES), page = sysconf(_SC_PAGE_SIZE);
  return static_cast<std::uint64_t>(pages) * static_cast<std::uint64_t>(page);
}

MemoryLimits memory_limits(const fs::path& root) {
  constexpr std::uint64_t kKiB = 1024;
  const std::uint64_t free = number_of(root / "proc/meminfo", "MemAvailable:") * kKiB;
  MemoryLimits limits{memory_bytes(), free > 0 ? free : memory_bytes()};
  for_each_control_group(root, "memory", [&limits](const fs::path& group, GroupVersion version) {
    narrow(group, version == GroupVersion::two ? kVersion2 : kVersion1, limits);
  });
  return limits;
}

std::uint64_t usable_memory() {
  static const std::uint64_t bytes = memory_limits().bytes;
  return bytes;
}

}  // namespace ringlet
