#include "data/memory.h"

#include <algorithm>
#include <fstream>
#include <limits>
#include <optional>
#include <sstream>
#include <string>

#include "data/byte_source.h"

namespace ringlet::data {

namespace {

namespace fs = std::filesystem;

/// What a control group's version calls its files.
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

/// By the group `name` below `mount`, and by all groups around it. A container may see its own
/// group as `mount`, and know only what the host calls it.
void narrow_by_groups(const fs::path& mount, const std::string& name, const GroupFiles& files,
                      MemoryLimits& limits) {
  const fs::path relative = fs::path(name).relative_path();
  for (fs::path group = relative; !group.empty(); group = group.parent_path()) {
    narrow(mount / group, files, limits);
  }
  narrow(mount, files, limits);
}

}  // namespace

MemoryLimits memory_limits(const fs::path& root) {
  constexpr std::uint64_t kKiB = 1024;
  const std::uint64_t free = number_of(root / "proc/meminfo", "MemAvailable:") * kKiB;
  MemoryLimits limits{memory_bytes(), free > 0 ? free : memory_bytes()};
  std::ifstream groups(root / "proc/self/cgroup");
  for (std::string line; std::getline(groups, line);) {  // "NUMBER:CONTROLLERS:NAME"
    const std::size_t first = line.find(':'), second = line.find(':', first + 1);
    if (first == std::string::npos || second == std::string::npos) continue;
    const std::string controllers = "," + line.substr(first + 1, second - first - 1) + ",";
    const std::string name = line.substr(second + 1);
    if (controllers == ",,") narrow_by_groups(root / "sys/fs/cgroup", name, kVersion2, limits);
    if (controllers.find(",memory,") != std::string::npos) {
      narrow_by_groups(root / "sys/fs/cgroup/memory", name, kVersion1, limits);
    }
  }
  return limits;
}

std::uint64_t usable_memory() {
  static const std::uint64_t bytes = memory_limits().bytes;
  return bytes;
}

}  // namespace ringlet::data
