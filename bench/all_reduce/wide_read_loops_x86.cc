#include <immintrin.h>

#include <cstddef>
#include <iterator>
#include <numeric>

#include "bench/all_reduce/read_all.h"

namespace ringlet::bench {

namespace {

// Four sums, each of a quarter of the memory: four places at once keep more lines on their way than
// one does, and between caches and from memory that is what counts.
//
// Functions with a target of their own, chosen by a pointer: a file compiled for AVX-512 as a whole
// would bring along inline functions of headers that other processors must not run.

__attribute__((target("avx512f"))) std::uint64_t read_avx512(const void* data, std::int64_t bytes) {
  constexpr std::int64_t kVector = sizeof(__m512i);
  const std::int64_t quarter = bytes / (4 * kVector) * kVector;
  const auto* memory = static_cast<const std::byte*>(data);
  __m512i a = _mm512_setzero_si512(), b = a, c = a, d = a;
  for (std::int64_t at = 0; at < quarter; at += kVector) {
    a = _mm512_add_epi64(a, _mm512_loadu_si512(memory + at));
    b = _mm512_add_epi64(b, _mm512_loadu_si512(memory + at + quarter));
    c = _mm512_add_epi64(c, _mm512_loadu_si512(memory + at + 2 * quarter));
    d = _mm512_add_epi64(d, _mm512_loadu_si512(memory + at + 3 * quarter));
  }
  alignas(sizeof a) std::uint64_t lanes[8];
  _mm512_store_si512(lanes, _mm512_add_epi64(_mm512_add_epi64(a, b), _mm512_add_epi64(c, d)));
  return std::accumulate(std::begin(lanes), std::end(lanes),
                         read_portably(memory + 4 * quarter, bytes - 4 * quarter));
}

__attribute__((target("avx2"))) __m256i load(const std::byte* from) {
  return _mm256_loadu_si256(reinterpret_cast<const __m256i*>(from));
}

__attribute__((target("avx2"))) std::uint64_t read_avx2(const void* data, std::int64_t bytes) {
  constexpr std::int64_t kVector = sizeof(__m256i);
  const std::int64_t quarter = bytes / (4 * kVector) * kVector;
  const auto* memory = static_cast<const std::byte*>(data);
  __m256i a = _mm256_setzero_si256(), b = a, c = a, d = a;
  for (std::int64_t at = 0; at < quarter; at += kVector) {
    a = _mm256_add_epi64(a, load(memory + at));
    b = _mm256_add_epi64(b, load(memory + at + quarter));
    c = _mm256_add_epi64(c, load(memory + at + 2 * quarter));
    d = _mm256_add_epi64(d, load(memory + at + 3 * quarter));
  }
  alignas(sizeof a) std::uint64_t lanes[4];
  _mm256_store_si256(reinterpret_cast<__m256i*>(lanes),
                     _mm256_add_epi64(_mm256_add_epi64(a, b), _mm256_add_epi64(c, d)));
  return std::accumulate(std::begin(lanes), std::end(lanes),
                         read_portably(memory + 4 * quarter, bytes - 4 * quarter));
}

}  // namespace

std::vector<ReadLoop> wide_read_loops() {
  std::vector<ReadLoop> loops;
  if (__builtin_cpu_supports("avx512f")) loops.push_back({"avx512", read_avx512});
  if (__builtin_cpu_supports("avx2")) loops.push_back({"avx2", read_avx2});
  return loops;
}

}  // namespace ringlet::bench
