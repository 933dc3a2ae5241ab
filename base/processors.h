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

/// relax_processor() is what a thread says to its processor while it spins: saves power, and lets
/// the core's other thread run.
///
/// fetch_to_write() begins to fetch the cache line of an address, and takes it from the cores that
/// have it. It waits for nothing, and changes nothing.
#if defined(__x86_64__)
inline void relax_processor() { __builtin_ia32_pause(); }
// Of __builtin_prefetch() for writing g++ makes one for reading where it does not know that the
// processor has this instruction. Those that do not, pass over it.
inline void fetch_to_write(const void* address) {
  asm volatile("prefetchw %0" ::"m"(*static_cast<const char*>(address)));
}
#elif defined(__aarch64__)
inline void relax_processor() { asm volatile("isb"); }  // a pause of its length; `yield` is none
inline void fetch_to_write(const void* address) { __builtin_prefetch(address, 1); }
#else
inline void relax_processor() {}
inline void fetch_to_write(const void* address) { __builtin_prefetch(address, 1); }
#endif

}  // namespace ringlet
