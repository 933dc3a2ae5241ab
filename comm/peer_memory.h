// Copying between the memory of two threads.
//
// A cache line that another core has read is shared, and the next plain store to it must first take
// it back from there, line by line: between distant cores this makes the store several times slower
// than the load of the peer's line. A streaming store writes the whole line past the caches
// instead. Collectives write mostly what a peer has just read, so copies of more than a few KiB
// stream. (A reduction into one's own memory loads its lines first, which takes them back in
// passing, so it stores as usual.)
#pragma once

#include <cstdint>

namespace ringlet::comm {

/// to[0, bytes) = from[0, bytes). The ranges do not overlap. What was written is visible to others
/// after the next release or sequentially consistent store of this thread.
void copy_across(void* to, const void* from, std::int64_t bytes);

}  // namespace ringlet::comm
