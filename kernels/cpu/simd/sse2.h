// What every x86-64 has: the portable vectors, and stores past the caches.
#pragma once

#include "kernels/cpu/simd/portable.h"
#include "kernels/cpu/simd/x86_stores.h"

namespace ringlet::simd {

struct Sse2 : Portable, X86Stores {
  using X86Stores::across;
  using X86Stores::end;
  static void line(std::byte* to, const std::byte* from) {
    for (std::size_t i = 0; i < 64; i += sizeof(__m128i)) {
      _mm_stream_si128(reinterpret_cast<__m128i*>(to + i),
                       _mm_loadu_si128(reinterpret_cast<const __m128i*>(from + i)));
    }
  }
};

}  // namespace ringlet::simd
