#include <emmintrin.h>

#include <cstddef>

#include "kernels/cpu/reduction/cast_loops.h"
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

ReduceFunction portable_reduction(ReduceOp op, DType dtype) {
  return find_reduction<Sse2Streaming>(op, dtype);
}

CastFunction portable_cast(DType from, DType to) { return find_cast<Sse2Streaming>(from, to); }

}  // namespace ringlet::impl
