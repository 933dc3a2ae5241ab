// The length of a vector: norm = sqrt(sum of x[i]^2), for watching gradients and for clipping them.
//
// Squares are added in double precision, in a tree whose form follows from the number of elements
// alone: the same elements have the same norm whatever the number of threads or multiprocessors.
// The CPU's tree and a GPU's are not the same.
#pragma once

#include "kernels/stream.h"
#include "kernels/tensor.h"

namespace ringlet {

/// A length that is too much, and where to write what shortens a longer x to it.
struct NormLimit {
  float most = 0;
  View factor{};  ///< f32 [1]: min(1, most / (norm + 1e-6)), element::clip_factor(); may be absent
};

/// x f32 [M], norm f32 [1]. NaN or infinite where an element is. Without elements, 0.
void l2_norm(Stream& stream, ConstView x, View norm, const NormLimit& limit = {});

// The same where parts of the vector lie on other ranks, which tell the sums of their squares.

/// A double among views, which have no such type: its bytes, u8 [8].
inline constexpr std::int64_t kDoubleBytes = 8;
/// sum (a double) = `weight` times the sum of the squares of x, f32 [M]. A weight of 0 leaves 0, or
/// NaN where x is broken.
void square_sum(Stream& stream, ConstView x, View sum, double weight = 1);
/// Elements [begin, end) of a vector, whose sum of squares is number `sum`.
struct SquareRange {
  std::int64_t begin = 0, end = 0;
  std::int64_t sum = 0;
};
/// Of K ranges of x at once, what square_sum() makes of each, to the same bits: sums (doubles, u8
/// [8 S]) at the ranges' numbers; the others stay. `ranges`: SquareRange [K] in the memory of the
/// device, as u8 [24 K]. None is longer than `longest`: beside each there is room for so many.
void square_sums(Stream& stream, ConstView x, ConstView ranges, std::int64_t longest, View sums);
/// norm = the root of `sums` (doubles, u8 [8 K]), added in their order; limit: as in l2_norm().
void norm_of_sums(Stream& stream, ConstView sums, View norm, const NormLimit& limit = {});

}  // namespace ringlet
