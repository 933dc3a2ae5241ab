// Counting right answers, and finding broken numbers.
#pragma once

#include "kernels/stream.h"
#include "kernels/tensor.h"

namespace ringlet {

/// count i32 [2 K] += per class k: [2k] samples whose label is k, [2k+1] those of them whose
/// largest logit is k (of equal logits the first wins; a NaN never wins). logits f32 [N, K], nchw
/// or lanes; labels i32 [N]. Labels outside [0, K) throw ContractError on the CPU; a GPU, which
/// cannot throw, does not count them.
void argmax_count(Stream& stream, ConstView logits, ConstView labels, View count);

/// count i32 [1] = number of stored elements that are NaN or infinite. x f32, any layout.
void count_nonfinite(Stream& stream, ConstView x, View count);

}  // namespace ringlet
