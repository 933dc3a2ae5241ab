// What learn_check does in place of the C library, so that a file cannot hide it (hooks.cc). Other
// programs have none of it, and then nothing is noticed.
#pragma once

#include <atomic>

namespace ringlet::learn {

/// While it is true, memory that is freed stays taken. Then no address is given twice, and what two
/// ranks both touch is memory that they share.
inline std::atomic<bool> g_keeps_freed_memory{false};

/// Threads that were started and have not ended; one that was joined has.
inline std::atomic<int> g_live_threads{0};

}  // namespace ringlet::learn
