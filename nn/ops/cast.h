// Differentiable change of the type of activations (kernels/cast.h): narrow at a model's input, f32
// again at its logits.
#pragma once

#include "nn/variable.h"

namespace ringlet::nn {

/// x as f32, bf16 or f16; x itself where it has the type. One of the two types is f32. The gradient
/// is cast back.
Variable cast(const Variable& x, DType dtype);

}  // namespace ringlet::nn
