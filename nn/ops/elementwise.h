// Differentiable operations that go over elements (kernels/elementwise.h).
#pragma once

#include "nn/cast.h"
#include "nn/variable.h"

namespace ringlet::nn {

/// a + b, of one shape and layout.
Variable add(const Variable& a, const Variable& b);
/// alpha * x
Variable scale(const Variable& x, float alpha);
/// max(0, x)
Variable relu(const Variable& x);
/// 1 / (1 + exp(-x))
Variable sigmoid(const Variable& x);
Variable tanh(const Variable& x);

}  // namespace ringlet::nn
