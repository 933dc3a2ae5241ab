// Stochastic gradient descent with momentum, Nesterov and weight decay, as torch.optim.SGD has it:
//
//   g = scale * gradient + weight_decay * value
//   velocity = momentum * velocity + g          (the first step from velocity 0, no dampening)
//   g = nesterov ? g + momentum * velocity : velocity
//   value -= learning_rate * g
//
// A velocity that would be subnormal becomes 0: see without_subnormal() in elements.h.
//
// Rates and scale are read from device memory, so that a captured graph can run with changing ones.
#pragma once

#include "kernels/decay_table.h"
#include "kernels/stream.h"
#include "kernels/tensor.h"

namespace ringlet {

struct SgdSpec {
  float weight_decay = 0;
  bool nesterov = false;
};

/// rates f32 [2]: learning rate, momentum. value, gradient, velocity f32 [M]. velocity may be
/// absent when momentum is 0 for the whole run. If momentum is not 0 then, this throws
/// ContractError on the CPU; a GPU cannot throw, there the values become NaN. scale f32 [1], or
/// absent for 1; where it is 0 the step is skipped, and nothing changes, whatever the gradient
/// holds. decays: see decay_table.h; absent, all values decay.
void sgd_update(Stream& stream, const SgdSpec& spec, ConstView rates, View value,
                ConstView gradient, View velocity, ConstView scale = {}, ConstView decays = {});

}  // namespace ringlet
