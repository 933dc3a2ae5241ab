#include "comm/peer_memory.h"

#include <cstddef>
#include <cstring>

#if defined(__SSE2__)
#include <emmintrin.h>
#endif

namespace ringlet::comm {

namespace {

#if defined(__SSE2__)

constexpr std::size_t kLine = 64;

/// `bytes` is a multiple of kLine, `to` is aligned to it.
void stream_lines(std::byte* to, const std::byte* from, std::size_t bytes) {
  for (std::size_t i = 0; i < bytes; i += sizeof(__m128i)) {
    _mm_stream_si128(reinterpret_cast<__m128i*>(to + i),
                     _mm_loadu_si128(reinterpret_cast<const __m128i*>(from + i)));
  }
  _mm_sfence();  // streaming stores are ordered by nothing less
}

void stream(std::byte* to, const std::byte* from, std::size_t bytes) {
  const std::size_t head = (kLine - reinterpret_cast<std::uintptr_t>(to) % kLine) % kLine;
  const std::size_t body = (bytes - head) / kLine * kLine;
  std::memcpy(to, from, head);
  stream_lines(to + head, from + head, body);
  std::memcpy(to + head + body, from + head + body, bytes - head - body);
}

#else

void stream(std::byte* to, const std::byte* from, std::size_t bytes) {
  std::memcpy(to, from, bytes);
}

#endif

}  // namespace

void copy_across(void* to, const void* from, std::int64_t bytes) {
  constexpr std::int64_t kStreamFrom = 4096;  // below it, writing past the caches costs more
  if (bytes >= kStreamFrom) {
    stream(static_cast<std::byte*>(to), static_cast<const std::byte*>(from),
           static_cast<std::size_t>(bytes));
  } else if (bytes > 0) {
    std::memcpy(to, from, static_cast<std::size_t>(bytes));
  }
}

}  // namespace ringlet::comm
