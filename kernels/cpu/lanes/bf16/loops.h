// What vectors.cc and tiles.cc share: packing and rounding, with AVX-512. Each has them for itself
// (static), compiled with its own options.
#pragma once

#include <immintrin.h>

#include "kernels/cpu/lanes/bf16/table.h"

namespace ringlet::lanes::bf16 {

namespace {

/// Sixteen elements in the lower halves of sixteen lanes.
[[gnu::always_inline]] inline __m512i low_halves(const Bits* from) {
  return _mm512_cvtepu16_epi32(_mm256_loadu_si256(reinterpret_cast<const __m256i*>(from)));
}

[[gnu::always_inline]] inline __m512 widened(const Bits* from) {
  return _mm512_castsi512_ps(_mm512_slli_epi32(low_halves(from), 16));
}

void interleave(const Interleave& p) {
  Bits* to = p.to;
  for (std::int64_t position = 0; position < p.positions; ++position, to += p.to_position) {
    __m512i both = low_halves(p.from[0] + position * kTile);
    if (p.from[1] != nullptr) {
      both = _mm512_or_si512(both, _mm512_slli_epi32(low_halves(p.from[1] + position * kTile), 16));
    }
    _mm512_storeu_si512(to, both);
  }
}

/// Pairs of sixteen samples of term t, and of term t + 8.
[[gnu::always_inline]] inline __m512i two_terms(const Turn& p, int t, std::int64_t offset) {
  const auto load = [&](int term) __attribute__((always_inline)) {
    const Bits* from = p.from[term];
    return from == nullptr ? _mm256_setzero_si256()
                           : _mm256_loadu_si256(reinterpret_cast<const __m256i*>(from + offset));
  };
  return _mm512_inserti64x4(_mm512_castsi256_si512(load(t)), load(t + 8), 1);
}

/// Of four registers, whose lanes of 128 bits hold rows: the same with columns, pairs in the upper
/// and lower half of a row apart.
[[gnu::always_inline]] inline void turn_four(__m512i* v) {
  const __m512i a = _mm512_unpacklo_epi32(v[0], v[1]), b = _mm512_unpackhi_epi32(v[0], v[1]);
  const __m512i c = _mm512_unpacklo_epi32(v[2], v[3]), d = _mm512_unpackhi_epi32(v[2], v[3]);
  v[0] = _mm512_unpacklo_epi64(a, c);
  v[1] = _mm512_unpackhi_epi64(a, c);
  v[2] = _mm512_unpacklo_epi64(b, d);
  v[3] = _mm512_unpackhi_epi64(b, d);
}

void turn(const Turn& p) {
  const __m512i low = _mm512_setr_epi64(0, 1, 8, 9, 4, 5, 12, 13);
  const __m512i high = _mm512_setr_epi64(2, 3, 10, 11, 6, 7, 14, 15);
  Bits* to = p.to;
  for (std::int64_t position = 0; position < p.positions; ++position, to += p.to_position) {
    const std::int64_t offset = position * p.from_position;
    __m512i first[4], second[4];
    for (int t = 0; t < 4; ++t) {
      first[t] = two_terms(p, t, offset);
      second[t] = two_terms(p, t + 4, offset);
    }
    turn_four(first);
    turn_four(second);
    for (int d = 0; d < 4; ++d) {
      _mm512_storeu_si512(to + d * kRow, _mm512_permutex2var_epi64(first[d], low, second[d]));
      _mm512_storeu_si512(to + (d + 4) * kRow,
                          _mm512_permutex2var_epi64(first[d], high, second[d]));
    }
  }
}

[[gnu::always_inline]] inline __m256i rounded(const Round& p, int row, int column) {
  __m512 v = _mm512_load_ps(p.sums[column] + row * kTile);
  if (p.bias != nullptr) v = _mm512_add_ps(v, _mm512_set1_ps(p.bias[row]));
  if (p.beta != 0) {
    const __m512 y = widened(p.y + row * p.y_row + column * p.y_position);
    v = _mm512_fmadd_ps(_mm512_set1_ps(p.beta), y, v);
  }
  // With a mask of ones: GCC 12 warns about its own header otherwise.
  if (p.relu) v = _mm512_maskz_max_ps(0xFFFF, _mm512_setzero_ps(), v);
  return reinterpret_cast<__m256i>(_mm512_cvtneps_pbh(v));
}

void round(const Round& p) {
  for (int row = 0; row < p.rows; ++row) {
    Bits* const y = p.y + row * p.y_row;
    _mm256_storeu_si256(reinterpret_cast<__m256i*>(y), rounded(p, row, 0));
    if (p.columns == 2) {
      _mm256_storeu_si256(reinterpret_cast<__m256i*>(y + p.y_position), rounded(p, row, 1));
    }
  }
}

}  // namespace

}  // namespace ringlet::lanes::bf16
