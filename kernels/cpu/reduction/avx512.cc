#include <immintrin.h>

#include <cstddef>

#include "kernels/cpu/reduction/loops.h"
#include "kernels/cpu/reduction/x86_lines.h"

namespace ringlet::impl {

namespace {

struct Avx512Streaming : X86Lines {
  static void line(std::byte* to, const std::byte* from) {
    _mm512_stream_si512(reinterpret_cast<__m512i*>(to), _mm512_loadu_si512(from));
  }
  static void end() { _mm_sfence(); }  // streaming stores are ordered by nothing less
};

}  // namespace

ReductionLoops loops_of(Avx512Set) { return loops_with<Avx512Streaming>(); }

}  // namespace ringlet::impl
