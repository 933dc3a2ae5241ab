// Adam with decoupled weight decay, as torch.optim.AdamW has it; t counts steps from 1:
//
//   g = scale * gradient
//   value -= learning_rate * weight_decay * value
//   mean = mean + (1 - beta1) * (g - mean)                 (both averages start at 0)
//   square = beta2 * square + (1 - beta2) * g^2
//   value -= learning_rate / (1 - beta1^t) * mean / (sqrt(square) / sqrt(1 - beta2^t) + epsilon)
//
// A mean or square that would be subnormal becomes 0: see without_subnormal() in elements.h.
//
// Source: Loshchilov and Hutter, "Decoupled weight decay regularization", 2019. What changes from
// step to step is read from device memory, so that a captured graph can run with changing rates.
#pragma once

#include "kernels/decay_table.h"
#include "kernels/stream.h"
#include "kernels/tensor.h"

namespace ringlet {

struct AdamWSpec {
  float beta2 = 0.999F;
  float square_share = 1e-3F;  ///< 1 - beta2, rounded once: from beta2 as f32 it is 5e-5 off
  float epsilon = 1e-8F;       ///< above 0
};

/// rates f32 [4]: 1 - beta1, learning rate * weight decay, learning rate / (1 - beta1^t) and
/// 1 / sqrt(1 - beta2^t). value, gradient, mean, square f32 [M]; square is nowhere below 0. scale
/// and decays: as sgd_update() has them.
void adamw_update(Stream& stream, const AdamWSpec& spec, ConstView rates, View value,
                  ConstView gradient, View mean, View square, ConstView scale = {},
                  ConstView decays = {});

}  // namespace ringlet
