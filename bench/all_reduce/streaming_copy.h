// Copying with stores that go past the caches to memory.
#pragma once

#include <cstdint>

namespace ringlet::bench {

/// Whether the processor has such stores, as far as this program knows.
bool has_streaming_copy();

/// Both addresses and `bytes` are multiples of 64. Only where has_streaming_copy().
void streaming_copy(const void* from, void* to, std::int64_t bytes);

}  // namespace ringlet::bench
