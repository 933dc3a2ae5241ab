// Differentiable losses of numbers against numbers, summed over the batch
// (kernels/pointwise_loss.h).
#pragma once

#include "nn/variable.h"

namespace ringlet::nn {

/// predictions [N, ...]; targets f32 of as many numbers, of the same
/// shape where either is not row-major -> f32 [1], the sum over the
/// samples of the mean squared error of each. It is not divided by the samples of the whole world:
/// the seed of backward does that. `sum`: f32 [1], to which the loss is added, or absent.
Variable mean_squared_error(const Variable& predictions, const Variable& targets,
                            const View& sum = {});

/// The same of logits and of the probabilities that their sigmoids should be, in [0, 1].
Variable binary_cross_entropy(const Variable& logits, const Variable& targets,
                              const View& sum = {});

}  // namespace ringlet::nn
