// Differentiable softmax cross-entropy, summed over the batch (kernels/softmax_cross_entropy.h).
#pragma once

#include "kernels/softmax_cross_entropy.h"
#include "nn/variable.h"

namespace ringlet::nn {

/// logits [N, K]; targets i32 [N] -> f32 [1], the sum of the samples' losses. It is not divided by
/// the number of samples of the whole world: the seed of backward does that.
Variable softmax_cross_entropy(const Variable& logits, const Variable& targets);

/// The same with label smoothing, in [0, 1). `sum`: f32 [1], to which the loss is added, or absent.
/// `weights` [K]: what a sample of each target counts. Their memory must stay for the step.
Variable smoothed_cross_entropy(const Variable& logits, const Variable& targets, float smoothing,
                                const View& sum = {}, const ClassWeights& weights = {});

}  // namespace ringlet::nn
