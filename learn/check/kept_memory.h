// Whether memory that is freed stays taken. Then no address is given twice, and what two ranks both
// touch is memory that they share. Only learn_check asks it, in its free() (main.cc).
#pragma once

#include <atomic>

namespace ringlet::learn {

inline std::atomic<bool> g_keeps_freed_memory{false};

}  // namespace ringlet::learn
