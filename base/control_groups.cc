#include "base/control_groups.h"

#include <cstddef>
#include <fstream>
#include <string>

namespace ringlet {

namespace {

namespace fs = std::filesystem;

/// A line of /proc/self/cgroup: "4:cpu,cpuacct:/user", or "0::/user" in version 2.
struct Membership {
  std::string controllers, group;
};

bool parse(const std::string& line, Membership& membership) {
  const std::size_t first = line.find(':'), second = line.find(':', first + 1);
  if (first == std::string::npos || second == std::string::npos) return false;
  membership = {line.substr(first + 1, second - first - 1), line.substr(second + 1)};
  return true;
}

/// Whether `one` is among names between commas.
bool lists(std::string_view controllers, std::string_view one) {
  while (!controllers.empty()) {
    const std::size_t comma = controllers.find(',');
    if (controllers.substr(0, comma) == one) return true;
    controllers.remove_prefix(comma == std::string_view::npos ? controllers.size() : comma + 1);
  }
  return false;
}

}  // namespace

void for_each_control_group(const fs::path& root, std::string_view controller,
                            const std::function<void(const fs::path&, GroupVersion)>& look) {
  const fs::path mounts = root / "sys/fs/cgroup";
  std::ifstream memberships(root / "proc/self/cgroup");
  Membership membership;
  const auto climb = [&](const fs::path& mount, GroupVersion version) {
    fs::path inside = fs::path(membership.group).lexically_normal().relative_path();
    for (; !inside.empty(); inside = inside.parent_path()) look(mount / inside, version);
    look(mount, version);
  };
  for (std::string line; std::getline(memberships, line);) {
    if (!parse(line, membership)) continue;
    if (membership.controllers.empty()) {
      climb(mounts, GroupVersion::two);
      climb(mounts / "unified", GroupVersion::two);  // of both versions beside each other
    } else if (lists(membership.controllers, controller)) {
      climb(mounts / controller, GroupVersion::one);
      if (membership.controllers != controller) {
        climb(mounts / membership.controllers, GroupVersion::one);
      }
    }
  }
}

}  // namespace ringlet
