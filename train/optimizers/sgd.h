// "sgd": stochastic gradient descent with momentum, Nesterov and weight decay, by the formula of
// kernels/sgd.h, one kernel a step. It keeps one arena, "velocity".
#pragma once

#include "train/optimizers/optimizer.h"

namespace ringlet::train {

OptimizerEntry sgd_optimizer();

}  // namespace ringlet::train
