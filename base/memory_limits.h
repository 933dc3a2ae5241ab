// How much memory this process may have: the machine's, or less where a control group limits it, as
// containers and Slurm's jobs are limited.
#pragma once

#include <cstdint>
#include <filesystem>

namespace ringlet {

/// That the machine has.
std::uint64_t memory_bytes();

struct MemoryLimits {
  std::uint64_t bytes = 0;  ///< that the process may have at most; more is not read into it
  std::uint64_t free = 0;   ///< that it could have now; what files fill in passing counts as free
};

/// Of now. `root` is "/", or a folder with the few files of /proc and /sys that are read.
MemoryLimits memory_limits(const std::filesystem::path& root = "/");

/// The first of the two.
std::uint64_t usable_memory();

}  // namespace ringlet
