// What AVX-512 has for bf16: vdpbf16ps multiplies pairs and adds both products to sixteen sums.
// Packing is here for AMX as well.
#include <immintrin.h>

#include "kernels/cpu/lanes/bf16/loops.h"

namespace ringlet::lanes::bf16 {

namespace {

// Not _mm512_set1_epi32: clang 16 crashes where it knows that all pairs are one.
__m512bh pair(const Bits* a) {
  return reinterpret_cast<__m512bh>(_mm512_broadcastd_epi32(_mm_loadu_si32(a)));
}

/// sums [16][16] of one tile of A after the other.
void multiply_one(const TileProduct& p, const Bits* a, const Bits* b, float* sums) {
  __m512 rows[kTile];
  for (int i = 0; i < kTile; ++i) {
    rows[i] = p.adds ? _mm512_load_ps(sums + i * kTile) : _mm512_setzero_ps();
  }
  for (std::int64_t run = 0; run < p.runs; ++run) {
    const Bits* at = b + p.b_runs[run];
    for (std::int64_t step = 0; step < p.steps; ++step, a += 2 * kTile * p.depth) {
      for (int d = 0; d < p.depth; ++d, at += kRow) {
        const auto columns = reinterpret_cast<__m512bh>(_mm512_loadu_si512(at));
#pragma GCC unroll 16
        for (int i = 0; i < kTile; ++i) {
          rows[i] = _mm512_dpbf16_ps(rows[i], pair(a + 2 * (i * p.depth + d)), columns);
        }
      }
    }
  }
  for (int i = 0; i < kTile; ++i) _mm512_store_ps(sums + i * kTile, rows[i]);
}

void multiply(const TileProduct& p) {
  for (int i = 0; i < p.rows; ++i) {
    for (int j = 0; j < p.columns; ++j) multiply_one(p, p.a[i], p.b[j], p.sums[i][j]);
  }
}

void begin(int /*depth*/) {}
void end() {}

}  // namespace

const Table kVectors{begin, end, multiply, interleave, turn, round};

}  // namespace ringlet::lanes::bf16
