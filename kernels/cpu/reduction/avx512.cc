#include <immintrin.h>

#include <cstddef>

#include "kernels/cpu/reduction/cast_loops.h"
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

ReduceFunction avx512_reduction(ReduceOp op, DType dtype) {
  return find_reduction<Avx512Streaming>(op, dtype);
}

CastFunction avx512_cast(DType from, DType to) { return find_cast<Avx512Streaming>(from, to); }

}  // namespace ringlet::impl
