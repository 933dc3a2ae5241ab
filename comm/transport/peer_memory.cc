#include "comm/transport/peer_memory.h"

#include <cstddef>
#include <cstring>
#include <fstream>

#if defined(__x86_64__)
#include <cpuid.h>
#include <emmintrin.h>
#endif

namespace ringlet::comm {

namespace {

#if defined(__x86_64__)

constexpr std::size_t kLine = 64;

__m128i load(const std::byte* from) {
  return _mm_loadu_si128(reinterpret_cast<const __m128i*>(from));
}

/// Copies by plain stores, which memcpy() does not promise. `bytes` is a multiple of kLine.
void copy_lines(std::byte* to, const std::byte* from, std::size_t bytes) {
  for (std::size_t i = 0; i < bytes; i += sizeof(__m128i)) {
    _mm_storeu_si128(reinterpret_cast<__m128i*>(to + i), load(from + i));
  }
}

/// `to` begins a line too.
void stream_lines(std::byte* to, const std::byte* from, std::size_t bytes) {
  for (std::size_t i = 0; i < bytes; i += sizeof(__m128i)) {
    _mm_stream_si128(reinterpret_cast<__m128i*>(to + i), load(from + i));
  }
  _mm_sfence();  // streaming stores are ordered by nothing less
}

void copy_by_instruction(std::byte* to, const std::byte* from, std::size_t bytes) {
  asm volatile("rep movsb" : "+D"(to), "+S"(from), "+c"(bytes) : : "memory");
}

/// Whether that is a fast instruction here: the processor says so ("ERMS").
bool has_fast_copies() {
  unsigned a = 0, b = 0, c = 0, d = 0;
  constexpr unsigned kLeaf = 7, kErms = 1U << 9U;
  return __get_cpuid_count(kLeaf, 0, &a, &b, &c, &d) != 0 && (b & kErms) != 0;
}

void copy(std::byte* to, const std::byte* from, std::size_t bytes) {
  constexpr std::size_t kStartPays = 8192;
  static const bool fast_copies = has_fast_copies();
  if (bytes >= kStartPays && fast_copies) return copy_by_instruction(to, from, bytes);
  const std::size_t head = (kLine - reinterpret_cast<std::uintptr_t>(to) % kLine) % kLine;
  if (bytes < head + kLine) {
    std::memcpy(to, from, bytes);
    return;
  }
  const std::size_t body = (bytes - head) / kLine * kLine;
  std::memcpy(to, from, head);
  (bytes < kStartPays ? copy_lines : stream_lines)(to + head, from + head, body);
  std::memcpy(to + head + body, from + head + body, bytes - head - body);
}

#else

void copy(std::byte* to, const std::byte* from, std::size_t bytes) { std::memcpy(to, from, bytes); }

#endif

}  // namespace

void copy_across(void* to, const void* from, std::int64_t bytes) {
  if (bytes <= 0) return;
  copy(static_cast<std::byte*>(to), static_cast<const std::byte*>(from),
       static_cast<std::size_t>(bytes));
}

std::int64_t last_cache_bytes() {
  constexpr std::int64_t kUsual = 32 << 20;
  // In KiB. (What sysconf() says is the sum over a virtual machine's host.)
  std::ifstream file("/sys/devices/system/cpu/cpu0/cache/index3/size");
  std::int64_t kib = 0;
  return file >> kib && kib > 0 ? kib * 1024 : kUsual;
}

}  // namespace ringlet::comm
