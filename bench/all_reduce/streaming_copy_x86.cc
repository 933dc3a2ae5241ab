#include <emmintrin.h>

#include "bench/all_reduce/copy_bandwidth.h"

namespace ringlet::bench {

void streaming_copy(const void* from, void* to, std::int64_t bytes) {
  const auto* source = static_cast<const __m128i*>(from);
  auto* target = static_cast<__m128i*>(to);
  const auto words = bytes / static_cast<std::int64_t>(sizeof(__m128i));
  for (std::int64_t i = 0; i < words; i += 4) {  // a cache line at once
    const __m128i a = _mm_load_si128(source + i), b = _mm_load_si128(source + i + 1);
    const __m128i c = _mm_load_si128(source + i + 2), d = _mm_load_si128(source + i + 3);
    _mm_stream_si128(target + i, a);
    _mm_stream_si128(target + i + 1, b);
    _mm_stream_si128(target + i + 2, c);
    _mm_stream_si128(target + i + 3, d);
  }
  _mm_sfence();
}

}  // namespace ringlet::bench
