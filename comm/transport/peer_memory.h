// Copying to memory that another core has read, as the memory that ranks show each other.
//
// A cache line that another core has read is shared. The next plain store to it must first take it
// back from there, line by line. Between distant cores this makes the store several times slower
// than the load of the other's line.
//
// A store of whole lines that does not read them first need not wait for that. There are two: the
// processor's own instruction for copies (rep movsb, where it is a fast one), and streaming stores,
// which go past the caches. The instruction is as good between distant cores and better between
// near ones. It takes long to start, so a few KiB go faster by plain stores. (A reduction into a
// rank's own memory loads its lines first, which takes them back in passing, so it stores as
// usual.)
#pragma once

#include <cstdint>

namespace ringlet::comm {

/// to[0, bytes) = from[0, bytes). The ranges do not overlap. What was written is visible to others
/// after the next release or sequentially consistent store of this thread.
void copy_across(void* to, const void* from, std::int64_t bytes);

/// Bytes of the processor's last-level cache; a usual size where the system does not say.
std::int64_t last_cache_bytes();

}  // namespace ringlet::comm
