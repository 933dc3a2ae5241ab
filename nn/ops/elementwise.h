// Differentiable operations that go over elements (kernels/elementwise.h).
#pragma once

#include "nn/variable.h"

namespace ringlet::nn {

/// a + b, of one shape and layout.
Variable add(const Variable& a, const Variable& b);
/// alpha * x
Variable scale(const Variable& x, float alpha);
/// max(0, x)
Variable relu(const Variable& x);
/// x as f32, bf16 or f16, as at a model's input and at its logits; x itself where it has the type.
/// One of the two types is f32. The gradient is cast back.
Variable cast(const Variable& x, DType dtype);

}  // namespace ringlet::nn
