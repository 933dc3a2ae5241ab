// Some rows of a matrix, those that a step works on (nn/row_sampling.h): a list of them in
// ascending order, behind which -1 stands where a step has fewer than there is room for. Which they
// are lies on the device, so that a captured step can be replayed with others.
#pragma once

#include <cstdint>

#include "kernels/stream.h"
#include "kernels/tensor.h"

namespace ringlet {

/// gathered f32 [R, D] = the rows of `matrix` (f32 [N, D]) that `rows` (i32 [R]) lists; inverse f32
/// [R]: 1 / |row|, as inverse_norms() has it (margin_softmax.h). Of a row that is listed as -1:
/// zeros, and an inverse of -1.
void gather_rows(Stream& stream, ConstView matrix, ConstView rows, View gathered, View inverse);

/// Where labels stand in the list: columns (i32 [S]) = `at` + i where rows[i] + first is the label
/// (i32 [S]); elsewhere -1, or what was there before where this list `joins` others.
void find_rows(Stream& stream, ConstView rows, ConstView labels, std::int64_t first,
               std::int64_t at, bool joins, View columns);

}  // namespace ringlet
