// "adamw": Adam with decoupled weight decay, by the formula of kernels/adamw.h, one kernel a step.
// It keeps two arenas, by PyTorch's names "exp_avg" and "exp_avg_sq". What depends on the step is
// computed in double on the host.
#pragma once

#include "train/optimizers/optimizer.h"

namespace ringlet::train {

OptimizerEntry adamw_optimizer();

}  // namespace ringlet::train
