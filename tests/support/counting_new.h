// Calls of operator new in a program that links counting_new.cc, which replaces all of its forms.
#pragma once

#include <cstdint>

namespace ringlet::test {

/// Calls so far, of all threads.
std::int64_t operator_new_calls();

/// Calls so far, of the calling thread.
std::int64_t operator_new_calls_of_this_thread();

}  // namespace ringlet::test
