// How many processors this process may use: those of the machine are often more.
//
//   affinity   where the calling thread may run, and those that it starts (taskset, a launcher's
//              binding, a container's set of processors)
//   quota      how much time the process's control group may use, in processors (docker --cpus,
//              limits of Kubernetes, CPUQuota of systemd), by version 1 or 2 of control groups; the
//              groups around it count too
#pragma once

#include <filesystem>
#include <vector>

namespace ringlet {

/// The numbers of the processors that the affinity permits; at least one.
std::vector<int> allowed_processors();

/// What the control groups permit, rounded up, at least 1; kNoQuota where there is no limit. `root`
/// is where /proc and /sys are.
int processor_quota(const std::filesystem::path& root = "/");
inline constexpr int kNoQuota = 1 << 30;

/// The lesser of the two, as of now. What spins, or runs beside something else, asks this.
int usable_processors();

/// What a thread says to its processor while it spins: saves power, and lets the core's other
/// thread run.
#if defined(__x86_64__)
inline void relax_processor() { __builtin_ia32_pause(); }
#elif defined(__aarch64__)
inline void relax_processor() { asm volatile("isb"); }  // a pause of its length; `yield` is none
#else
inline void relax_processor() {}
#endif

}  // namespace ringlet
