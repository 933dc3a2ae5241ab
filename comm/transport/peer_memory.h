// Copying to memory that another core has read, as the memory that ranks show each other.
//
// A cache line that another core has read is shared. The next plain store to it must first take it
// back from there, line by line. Between distant cores this makes the store several times slower
// than the load of the other's line.
//
// A store of whole lines that does not read them first need not wait for that. There are two: the
// processor's own instruction for copies (rep movsb, where it is a fast one), and streaming stores,
// which go past the caches. Which is the faster one depends on the processor and on how far the
// reader's core is: between distant cores of a Zen 4 the instruction takes up to nine times as
// long, between near ones streaming half as long again, and on Intel's Xeons the instruction is as
// good or better. So each thread times both, by size, and looks again now and then. A few KiB go by
// plain stores, or stream likewise. (A reduction into a rank's own memory loads its lines first,
// which takes them back in passing, so it stores as usual.)
#pragma once

#include <cstddef>
#include <cstdint>

#include "base/processors.h"

namespace ringlet::comm {

/// Bytes of two cache lines, which Intel's processors fetch together where the first begins at a
/// multiple of as many: what a rank looks at and the data behind it take one way, not two.
inline constexpr std::size_t kLinesAtOnce = 128;

/// to[0, bytes) = from[0, bytes). The ranges do not overlap. What was written is visible to others
/// after the next release or sequentially consistent store of this thread.
void copy_across(void* to, const void* from, std::int64_t bytes);

/// Fetches the cache lines of [data, data + bytes) back from the cores that have read them, to be
/// written, while this thread goes on. For memory that is written next, once nobody reads it any
/// more.
inline void take_back(const void* data, std::int64_t bytes) {
  for (const auto* line = static_cast<const std::byte*>(data); bytes > 0; line += 64, bytes -= 64) {
    fetch_to_write(line);
  }
}

/// Bytes of the processor's last-level cache; a usual size where the system does not say.
std::int64_t last_cache_bytes();

}  // namespace ringlet::comm
