#include <emmintrin.h>

#include <cstddef>

#include "kernels/cpu/reduction/loops.h"
#include "kernels/cpu/reduction/x86_lines.h"

namespace ringlet::impl {

namespace {

struct Sse2Streaming : X86Lines {
  static void line(std::byte* to, const std::byte* from) {
    for (std::size_t i = 0; i < kLine; i += sizeof(__m128i)) {
      _mm_stream_si128(reinterpret_cast<__m128i*>(to + i),
                       _mm_loadu_si128(reinterpret_cast<const __m128i*>(from + i)));
    }
  }
  static void end() { _mm_sfence(); }  // streaming stores are ordered by nothing less
};

}  // namespace

ReductionLoops loops_of(PortableSet) { return loops_with<Sse2Streaming>(); }

}  // namespace ringlet::impl
