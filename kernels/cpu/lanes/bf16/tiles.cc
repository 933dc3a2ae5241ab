// AMX: tdpbf16ps multiplies a tile of 16 rows of 16 pairs with one of 16 pairs of rows. Four tiles
// of sums, two of A and two of B fill its eight registers.
#include <immintrin.h>

#include "kernels/cpu/lanes/bf16/loops.h"

namespace ringlet::lanes::bf16 {

namespace {

/// What ldtilecfg loads: how many rows and bytes each register has.
struct alignas(64) TileShapes {
  std::uint8_t palette = 1;
  std::uint8_t start_row = 0;
  std::uint8_t reserved[14] = {};
  std::uint16_t row_bytes[16] = {};
  std::uint8_t rows[16] = {};
};

constexpr int kA = 4, kB = 6;  // registers; the sums are from 0 on
constexpr std::int64_t kRowBytes = 64;

void begin(int depth) {
  TileShapes shapes;
  for (int i = 0; i < 8; ++i) {
    shapes.row_bytes[i] = kRowBytes;
    shapes.rows[i] = kTile;
  }
  for (int i = 0; i < 2; ++i) {
    shapes.row_bytes[kA + i] = static_cast<std::uint16_t>(4 * depth);
    shapes.rows[kB + i] = static_cast<std::uint8_t>(depth);
  }
  // GCC's intrinsic tells it of eight bytes that are read; the others have to be there as well.
  asm volatile("" : : "r"(&shapes) : "memory");
  _tile_loadconfig(&shapes);
}

void end() { _tile_release(); }

/// kRows tiles of A and kColumns of B.
template <int kRows, int kColumns>
void multiply_tiles(const TileProduct& p) {
  const auto each = [&p](auto first, auto second, auto third, auto fourth)
      __attribute__((always_inline)) {
    first(p.sums[0][0]);
    if constexpr (kColumns == 2) second(p.sums[0][1]);
    if constexpr (kRows == 2) third(p.sums[1][0]);
    if constexpr (kRows == 2 && kColumns == 2) fourth(p.sums[1][1]);
  };
  if (p.adds) {
    each(
        [](float* s) __attribute__((always_inline)) { _tile_loadd(0, s, kRowBytes); },
        [](float* s) __attribute__((always_inline)) { _tile_loadd(1, s, kRowBytes); },
        [](float* s) __attribute__((always_inline)) { _tile_loadd(2, s, kRowBytes); },
        [](float* s) __attribute__((always_inline)) { _tile_loadd(3, s, kRowBytes); });
  } else {
    _tile_zero(0);
    _tile_zero(1);
    _tile_zero(2);
    _tile_zero(3);
  }
  const std::int64_t a_row = 4 * std::int64_t{p.depth};
  const std::int64_t a_tile = kTile * 2 * std::int64_t{p.depth}, b_tile = p.depth * kRow;
  std::int64_t a = 0;
  for (std::int64_t run = 0; run < p.runs; ++run) {
    std::int64_t b = p.b_runs[run];
    for (std::int64_t step = 0; step < p.steps; ++step, a += a_tile, b += b_tile) {
      _tile_loadd(6, p.b[0] + b, kRowBytes);
      _tile_loadd(4, p.a[0] + a, a_row);
      _tile_dpbf16ps(0, 4, 6);
      if constexpr (kColumns == 2) {
        _tile_loadd(7, p.b[1] + b, kRowBytes);
        _tile_dpbf16ps(1, 4, 7);
      }
      if constexpr (kRows == 2) {
        _tile_loadd(5, p.a[1] + a, a_row);
        _tile_dpbf16ps(2, 5, 6);
      }
      if constexpr (kRows == 2 && kColumns == 2) _tile_dpbf16ps(3, 5, 7);
    }
  }
  each(
      [](float* s) __attribute__((always_inline)) { _tile_stored(0, s, kRowBytes); },
      [](float* s) __attribute__((always_inline)) { _tile_stored(1, s, kRowBytes); },
      [](float* s) __attribute__((always_inline)) { _tile_stored(2, s, kRowBytes); },
      [](float* s) __attribute__((always_inline)) { _tile_stored(3, s, kRowBytes); });
}

void multiply(const TileProduct& p) {
  if (p.rows == 2) {
    p.columns == 2 ? multiply_tiles<2, 2>(p) : multiply_tiles<2, 1>(p);
  } else {
    p.columns == 2 ? multiply_tiles<1, 2>(p) : multiply_tiles<1, 1>(p);
  }
}

}  // namespace

const Table kTiles{begin, end, multiply, interleave, turn, round};

}  // namespace ringlet::lanes::bf16
