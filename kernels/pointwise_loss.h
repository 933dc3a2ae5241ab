// Losses that compare predictions with targets number by number: the mean over the F numbers of a
// sample, summed over the samples of the batch.
//
//   squared_error          l(p, t) = (p - t)^2
//   binary_cross_entropy   l(z, t) = max(z, 0) - z t + log(1 + exp(-|z|)), of a logit z: sigmoid(z)
//                          should be the probability t, in [0, 1]
//
//   loss = sum over n of ( 1 / F * sum over f of l(p[n,f], t[n,f]) )
//   dp   = beta * dp + dloss / F * l'(p, t)      l' = 2 (p - t), sigmoid(z) - t
//
// Divided by the samples that is torch.nn.MSELoss and torch.nn.BCEWithLogitsLoss. The sum is not
// divided: dloss, one number in device memory, carries 1 / (samples of the whole world).
#pragma once

#include <cstdint>

#include "kernels/stream.h"
#include "kernels/tensor.h"

namespace ringlet {

enum class PointwiseLoss : std::uint8_t { squared_error, binary_cross_entropy };

/// predictions: activations (kernels/tensor.h) [N, ...]; targets f32, else like them; loss f32 [1]
/// (summed in double, N = 0 gives 0); sum f32 [1], to which the loss is added, or absent. What
/// lanes beyond N hold does not count.
void pointwise_loss_forward(Stream& stream, PointwiseLoss kind, ConstView predictions,
                            ConstView targets, View loss, View sum = {});
/// dloss f32 [1]; dpredictions like the predictions; lanes beyond N get 0.
void pointwise_loss_backward(Stream& stream, PointwiseLoss kind, ConstView predictions,
                             ConstView targets, ConstView dloss, float beta, View dpredictions);

}  // namespace ringlet
