// The loops behind convolutions in bf16, as pointers. Plain data: this header is compiled with
// wider instructions than the rest of the program, so it may hold no function.
//
// All products are of tiles. A tile of sums is f32 [16][16]. Its rows come from a tile of A,
// bf16 [16][depth][2], its columns from a tile of B, bf16 [depth][16][2]:
//
//   sums[i, j] += sum over d < depth, e < 2 of A[i, d, e] * B[d, j, e]
//
// Two terms side by side are what the processor's instructions multiply and add at once. A row of B
// is a vector register; a whole tile is one of AMX's registers.
#pragma once

#include <cstdint>

namespace ringlet::lanes::bf16 {

using Bits = std::uint16_t;  ///< of a bf16

inline constexpr std::int64_t kTile = 16;  ///< rows, and columns, of a tile of sums
inline constexpr std::int64_t kSums = kTile * kTile;
inline constexpr std::int64_t kRow = 2 * kTile;  ///< elements in a row of B

/// One or two tiles of A times one or two of B. sums[i][j] are set, or added to.
struct TileProduct {
  const Bits* a[2];            ///< [runs][steps] tiles, side by side
  const Bits* b[2];            ///< of run r and step s: at b + b_runs[r] + s * depth * kRow
  const std::int64_t* b_runs;  ///< elements
  std::int64_t runs, steps;
  int depth;          ///< rows of a tile of B, 1 to 16
  int rows, columns;  ///< tiles of A and of B: 1 or 2
  bool adds;
  float* sums[2][2];  ///< each kSums, aligned to 64 bytes
};

/// Pairs of channels side by side: to[position][16][2] = from[0 or 1][position][16].
struct Interleave {
  const Bits* from[2];  ///< the second may be null: zeros
  std::int64_t positions;
  Bits* to;
  std::int64_t to_position;  ///< elements from one position to the next
};

/// Terms in columns, for pairs of samples: to[position][8][16][2] = from[term][position][8][2].
struct Turn {
  const Bits* from[16];                     ///< null: zeros
  std::int64_t from_position, to_position;  ///< elements from one position to the next
  std::int64_t positions;
  Bits* to;
};

/// Rounds the rows of one or two tiles of sums: y[i, position j, 16] =
/// act(sums[j][i, :] + bias[i] + beta * y).
struct Round {
  const float* sums[2];
  int columns;  ///< positions: 1 or 2
  int rows;     ///< up to 16
  Bits* y;
  std::int64_t y_row, y_position;  ///< elements
  const float* bias;               ///< or null
  float beta;                      ///< 0 does not read y
  bool relu;
};

struct Table {
  /// A thread that multiplies tiles of one depth begins with this and ends with the next.
  void (*begin)(int depth);
  void (*end)();
  void (*multiply)(const TileProduct&);
  void (*interleave)(const Interleave&);
  void (*turn)(const Turn&);
  void (*round)(const Round&);
};

/// With AVX512_BF16's vdpbf16ps.
extern const Table kVectors;
/// With AMX's tdpbf16ps.
extern const Table kTiles;

}  // namespace ringlet::lanes::bf16
