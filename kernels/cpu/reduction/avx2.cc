#include <immintrin.h>

#include <cstddef>

#include "kernels/cpu/reduction/loops.h"
#include "kernels/cpu/reduction/x86_lines.h"

namespace ringlet::impl {

namespace {

struct Avx2Streaming : X86Lines {
  static void line(std::byte* to, const std::byte* from) {
    for (std::size_t i = 0; i < kLine; i += sizeof(__m256i)) {
      _mm256_stream_si256(reinterpret_cast<__m256i*>(to + i),
                          _mm256_loadu_si256(reinterpret_cast<const __m256i*>(from + i)));
    }
  }
  static void end() { _mm_sfence(); }  // streaming stores are ordered by nothing less
};

}  // namespace

ReductionLoops loops_of(Avx2Set) { return loops_with<Avx2Streaming>(); }

}  // namespace ringlet::impl
