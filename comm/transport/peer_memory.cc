#include "comm/transport/peer_memory.h"

#include <algorithm>
#include <array>
#include <bit>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <fstream>

#include "base/stopwatch.h"

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

/// By the widest vectors, while it is short.
void copy_plainly(std::byte* to, const std::byte* from, std::size_t bytes) {
  std::memcpy(to, from, bytes);
}

/// `to` begins a line, and `bytes` is a multiple of kLine.
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

using Way = void (*)(std::byte* to, const std::byte* from, std::size_t bytes);

/// Whether streaming stores are the way for copies of one size on this thread: as it has measured,
/// and looks again every now and then, since a system moves threads to other cores.
class Choice {
 public:
  void copy(Way usual, std::byte* to, const std::byte* from, std::size_t bytes) {
    if (wait_ > 0) {
      --wait_;
      return (streams_ ? stream_lines : usual)(to, from, bytes);
    }
    const bool by_streaming = looks_ % 2 == 1;
    const std::int64_t begin = now_ns();
    (by_streaming ? stream_lines : usual)(to, from, bytes);
    _mm_mfence();  // what waits in the processor to be stored is not done
    const auto cost = static_cast<double>(now_ns() - begin) / static_cast<double>(bytes);
    double& least = by_streaming ? least_streamed_ : least_usual_;
    least = looks_ < 2 ? cost : std::min(least, cost);
    if (++looks_ == kLooks) choose(bytes);
  }

 private:
  // Three of each: a rank takes turns with two pieces of memory, and the first call is cold.
  static constexpr int kLooks = 6;
  static constexpr int kShortest = 32, kLongest = 1024;  // calls from look to look
  // What was streamed the reader finds in memory, and not in a cache between the two cores. A few
  // lines it fetches all at once, from wherever.
  static constexpr std::size_t kLong = 4096;

  void choose(std::size_t bytes) {
    const double reader_pays = bytes < kLong ? 1.2 : 2;
    const bool streams = least_usual_ > reader_pays * least_streamed_;
    pause_ = streams == streams_ ? std::min(2 * pause_, kLongest) : kShortest;
    streams_ = streams;
    wait_ = pause_;
    looks_ = 0;
  }

  bool streams_ = false;
  int looks_ = 0, wait_ = 0, pause_ = kShortest / 2;
  double least_usual_ = 0, least_streamed_ = 0;  // nanoseconds a byte
};

void copy(std::byte* to, const std::byte* from, std::size_t bytes) {
  // Shorter ones are no longer than the fence behind streaming stores.
  constexpr std::size_t kChoicePays = 2048, kStartPays = 8192;
  constexpr int kSizes = 20;  // powers of two, from kChoicePays on
  static const bool fast_copies = has_fast_copies();
  thread_local std::array<Choice, kSizes> choices;
  const std::size_t head = (kLine - reinterpret_cast<std::uintptr_t>(to) % kLine) % kLine;
  if (bytes < head + kChoicePays) {
    std::memcpy(to, from, bytes);
    return;
  }
  const std::size_t body = (bytes - head) / kLine * kLine;
  std::memcpy(to, from, head);
  const auto size = static_cast<std::size_t>(std::bit_width(body / kChoicePays)) - 1;
  const Way usual = body < kStartPays ? copy_plainly
                    : fast_copies     ? copy_by_instruction
                                      : stream_lines;
  choices[std::min<std::size_t>(size, kSizes - 1)].copy(usual, to + head, from + head, body);
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
