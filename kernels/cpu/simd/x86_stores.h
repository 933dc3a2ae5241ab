// Storing whole lines, as all of x86's instruction sets have it.
#pragma once

#include <emmintrin.h>

#include <cstddef>

namespace ringlet::simd {

struct X86Stores {
  static void end() { _mm_sfence(); }  // streaming stores are ordered by nothing less
  /// The processor's own instruction for copies takes lines over without reading them.
  static void across(void* to, const void* from, std::size_t bytes) {
    asm volatile("rep movsb" : "+D"(to), "+S"(from), "+c"(bytes) : : "memory");
  }
};

}  // namespace ringlet::simd
