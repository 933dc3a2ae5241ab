// Differentiable dropout (kernels/dropout.h).
#pragma once

#include <cstdint>

#include "nn/variable.h"

namespace ringlet::nn {

/// x [N, ...]. The mask is a function of the step's seed, epoch and sample positions (StepContext)
/// and of `operation`, which tells the dropouts of a model apart.
Variable dropout(const Variable& x, float probability, std::uint64_t operation);

}  // namespace ringlet::nn
