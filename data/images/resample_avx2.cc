#include <immintrin.h>

#include "data/images/resample_versions.h"

namespace ringlet::data {

namespace {

struct Avx2Vector {
  using Ints = std::int32_t __attribute__((vector_size(32)));

  static Ints load(const std::uint8_t* bytes) {
    return reinterpret_cast<Ints>(
        _mm256_cvtepu8_epi32(_mm_loadl_epi64(reinterpret_cast<const __m128i*>(bytes))));
  }
  static Ints load(const std::uint8_t* upper, const std::uint8_t* lower) {
    int high = 0, low = 0;
    __builtin_memcpy(&high, upper, sizeof high);
    __builtin_memcpy(&low, lower, sizeof low);
    return reinterpret_cast<Ints>(
        _mm256_cvtepu8_epi32(_mm_insert_epi32(_mm_cvtsi32_si128(high), low, 1)));
  }
  static void store(Ints values, std::uint8_t* bytes) {
    const auto all = reinterpret_cast<__m256i>(values);
    const __m128i words =
        _mm_packus_epi32(_mm256_castsi256_si128(all), _mm256_extracti128_si256(all, 1));
    _mm_storel_epi64(reinterpret_cast<__m128i*>(bytes), _mm_packus_epi16(words, words));
  }
};

}  // namespace

ResampleLoops best_resample_loops() {
  if (__builtin_cpu_supports("avx2") == 0) return resample_loops_portable();
  return {across_rows<Avx2Vector>, down_rows<Avx2Vector>};
}

}  // namespace ringlet::data
