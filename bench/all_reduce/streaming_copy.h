// Copying with stores that go past the caches to memory.
#pragma once

#include <cstdint>

#include "base/instruction_set.h"

namespace ringlet::bench {

/// Whether the processor has such stores, as far as this program knows: every x86-64 has SSE2.
inline constexpr bool kHasStreamingCopy = kX86;

/// Both addresses and `bytes` are multiples of 64. Exists only where kHasStreamingCopy.
void streaming_copy(const void* from, void* to, std::int64_t bytes);

}  // namespace ringlet::bench
