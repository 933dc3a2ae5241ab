// Memory set aside, so that a program that runs out of memory can still say so.
#pragma once

namespace ringlet {

/// Sets some addresses aside, which the first allocation that fails gives back: what follows, the
/// unwinding and the message, finds memory. That allocation fails all the same, with
/// std::bad_alloc. Also lets the C library load now what it needs to unwind through its own
/// frames (std::call_once), for which it would end the process later. To be called once, first.
void set_memory_aside();

}  // namespace ringlet
