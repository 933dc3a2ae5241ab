// What the operating system says about this process.
#pragma once

#include <cstdint>

namespace ringlet::app {

/// Wall-clock seconds since the process was started, to 10 ms.
double seconds_since_process_start();
/// This process's largest resident memory so far, in MiB.
std::int64_t peak_memory_mib();

}  // namespace ringlet::app
