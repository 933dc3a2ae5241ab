// The same work for each of many things, such as the pictures of a folder, on several threads.
#pragma once

#include <cstdint>
#include <functional>

#include "base/stop_request.h"

namespace ringlet::data {

/// Calls work(i) for each i from 0 to count - 1, on this thread and `threads` - 1 others. Throws
/// the error of the smallest i that failed; those behind it may not have been begun.
/// Asks `stop` before each, and throws Stopped where that says so.
void in_parallel(std::int64_t count, int threads, const std::function<void(std::int64_t)>& work,
                 const StopRequest& stop = {});

}  // namespace ringlet::data
