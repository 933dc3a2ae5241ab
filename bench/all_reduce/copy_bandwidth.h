// How fast the machine copies memory: an upper limit for every all-reduce of large buffers.
#pragma once

#include <cstdint>
#include <optional>

#include "base/instruction_set.h"

namespace ringlet::bench {

/// Bytes copied a second, in GB (1e9); each copied byte is read once and written once. The best of
/// several passes.
struct CopyRate {
  double memcpy_gbs = 0;
  std::optional<double> streaming_gbs{};  ///< with stores past the caches; where there are such
};

struct CopyBandwidth {
  std::int64_t buffer_bytes = 0;  ///< copied in a pass, by all threads together
  int threads = 1;                ///< of `all`: as many as processors that may be used
  CopyRate one{};                 ///< one thread alone
  CopyRate all{};
};

/// Copies a buffer far larger than the caches, for about a second.
CopyBandwidth measure_copy_bandwidth();

/// Bytes of the largest cache, as the system tells; 0 where it does not.
std::int64_t largest_cache_bytes();

/// Whether the processor has stores that go past the caches to memory, as far as this program
/// knows: every x86-64 has SSE2.
inline constexpr bool kHasStreamingCopy = kX86;

/// Copies with these. Both addresses and `bytes` are multiples of 64. Exists only where
/// kHasStreamingCopy.
void streaming_copy(const void* from, void* to, std::int64_t bytes);

}  // namespace ringlet::bench
