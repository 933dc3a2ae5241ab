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

}  // namespace ringlet
