// The control groups that limit this process, as containers and Slurm's jobs are limited.
#pragma once

#include <cstdint>
#include <filesystem>
#include <functional>
#include <string_view>

namespace ringlet {

enum class GroupVersion : std::uint8_t { one, two };

/// Calls `look` with the folder of each group that this process is in and that has `controller`
/// ("cpu", "memory"), of both versions, and with those of all groups around it. Some are not there:
/// in a container its own group may be the mount, and yet be called by its name outside. `root` is
/// where /proc and /sys are.
void for_each_control_group(
    const std::filesystem::path& root, std::string_view controller,
    const std::function<void(const std::filesystem::path& folder, GroupVersion version)>& look);

}  // namespace ringlet
