// Counting right answers, and finding broken numbers.
#pragma once

#include "kernels/stream.h"
#include "kernels/tensor.h"

namespace ringlet {

/// count i32 [2 K]: adds for each class k, to [2k] the samples whose label is k, and to [2k+1]
/// those of them whose largest logit is k. Of equal logits the first wins; a NaN never wins.
/// logits: activations (kernels/tensor.h) [N, K], nchw or lanes; labels i32 [N]. Labels outside
/// [0, K) throw ContractError on the CPU. A GPU cannot throw and does not count them.
void argmax_count(Stream& stream, ConstView logits, ConstView labels, View count);

/// count i32 [1] = number of stored elements that are NaN or infinite. x f32, bf16 or
/// f16, any layout.
void count_nonfinite(Stream& stream, ConstView x, View count);

}  // namespace ringlet
