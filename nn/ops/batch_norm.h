// Differentiable batch normalisation, with a residual addition and a ReLU (kernels/batch_norm.h).
//
// In training a batch's own statistics normalise it (those of the world's batch where the step's
// context has a CrossReplica), and go into RunningStatistics::update. Otherwise, or frozen, the
// running ones do. Where a layer runs twice in a pass, both uses go into its running statistics.
#pragma once

#include "kernels/activation.h"
#include "nn/parameter.h"
#include "nn/variable.h"

namespace ringlet::nn {

struct BatchNormSpec {
  float epsilon = 1e-5F;
  float momentum = 0.1F;  ///< of the new value: running = (1 - momentum) running + momentum batch
  bool frozen = false;    ///< the running statistics normalise in training as well, and stay; also
                          ///< where RunningStatistics::is_frozen
};

/// Of what a recorded graph keeps for batch_norm; its inputs are x, weight, bias, residual.
struct RecordedBatchNorm {
  BatchNormSpec spec;
  Activation activation = Activation::none;
  const RunningStatistics* running = nullptr;
};

/// x [N, C] or [N, C, H, W]; weight and bias [C], or absent for 1 and 0; residual like x, or
/// absent. Throws ContractError in training where a channel has one value, which has no variance.
Variable batch_norm(const Variable& x, const Variable& weight, const Variable& bias,
                    RunningStatistics& running, const BatchNormSpec& spec,
                    const Variable& residual = {}, Activation activation = Activation::none);

}  // namespace ringlet::nn
