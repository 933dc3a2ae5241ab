// The length of a vector: norm = sqrt(sum of x[i]^2), for watching gradients.
//
// Squares are added in double precision, in a tree whose form follows from the number of elements
// alone: the same elements have the same norm whatever the number of threads or multiprocessors.
// The CPU's tree and a GPU's are not the same.
#pragma once

#include "kernels/stream.h"
#include "kernels/tensor.h"

namespace ringlet {

/// x f32 [M], norm f32 [1]. NaN or infinite where an element is. Without elements, 0.
void l2_norm(Stream& stream, ConstView x, View norm);

}  // namespace ringlet
