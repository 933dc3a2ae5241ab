// Every operator new of the executable that links counting_new.cc counts.
#pragma once

#include <cstdint>

namespace ringlet {

/// Calls of operator new by the calling thread so far.
std::int64_t allocations_of_this_thread();

}  // namespace ringlet
