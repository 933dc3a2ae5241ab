// How often this program has called operator new, on all of its threads.
#pragma once

#include <cstdint>

namespace ringlet::test {

/// Calls so far; -1 where they are not counted: builds with a sanitizer, which has an operator new
/// of its own (counting_new_off.cc).
std::int64_t operator_new_calls();

}  // namespace ringlet::test
