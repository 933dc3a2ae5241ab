// The one differentiable operation that the dry run adds to a model: its input has the activations'
// type. The others are in nn/ops.
#pragma once

#include "nn/variable.h"

namespace ringlet::nn {

/// x as f32, bf16 or f16, as at a model's input and at its logits; x itself where it has the type.
/// One of the two types is f32. The gradient is cast back.
Variable cast(const Variable& x, DType dtype);

}  // namespace ringlet::nn
