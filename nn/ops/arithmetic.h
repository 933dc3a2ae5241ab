// Differentiable sums and multiples (kernels/elementwise.h).
#pragma once

#include "nn/variable.h"

namespace ringlet::nn {

/// a + b, of one shape and layout.
Variable add(const Variable& a, const Variable& b);
/// alpha * x
Variable scale(const Variable& x, float alpha);

}  // namespace ringlet::nn
