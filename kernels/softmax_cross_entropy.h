// Softmax cross-entropy from logits, summed over the samples of the batch.
//
//   loss = sum over n of ( log sum over k of exp(z[n,k]) - z[n, label[n]] )
//   dz   = beta * dz + dloss * ( softmax(z) - onehot(label) )
//
// With label smoothing a, as torch.nn.CrossEntropyLoss has it, the label's class is to have a share
// of 1 - a, and all K classes share the rest:
//
//   loss = sum over n of ( (1 - a) * -log p[n, label[n]] + a / K * sum over k of -log p[n,k] )
//   dz   = beta * dz + dloss * ( softmax(z) - (1 - a) * onehot(label) - a / K )
//
// With weights w of the classes, as that class of PyTorch's has them:
//
//   loss = sum over n of ( (1 - a) w[label] * -log p[n, label]
//                          + a / K * sum over k of w[k] * -log p[n,k] )
//   dz   = beta * dz + dloss * ( ((1 - a) w[label] + a * mean(w)) softmax(z)
//                                - (1 - a) w[label] onehot(label) - a / K * w )
//
// What PyTorch then calls the mean is the loss over the sum of w[label] of all samples; who wants
// that puts 1 / (that sum over the whole world) into dloss.
//
// Stable for logits of any finite size (the maximum is subtracted). The sum is not divided: dloss,
// one number in device memory, carries 1 / (samples of the whole world).
#pragma once

#include "kernels/stream.h"
#include "kernels/tensor.h"

namespace ringlet {

/// What each class counts; by default all count the same.
struct ClassWeights {
  ConstView of_class = {};  ///< f32 [K], or absent
  float mean = 1;           ///< of these
};

/// logits: activations (kernels/tensor.h) [N, K], nchw or lanes; labels i32 [N] in [0, K);
/// probabilities f32, else like logits (kept for backward, 0 in lanes beyond N); loss f32 [1]
/// (summed in double, N = 0 gives 0); sum f32 [1], to which the loss is added, or absent. Labels
/// outside [0, K) throw ContractError on the CPU. A GPU cannot throw: there the loss becomes NaN.
/// Data sets are checked when they are read. smoothing in [0, 1).
void softmax_cross_entropy_forward(Stream& stream, ConstView logits, ConstView labels,
                                   View probabilities, View loss, float smoothing = 0,
                                   View sum = {}, const ClassWeights& weights = {});
/// dloss f32 [1]; dlogits like the logits; lanes beyond N get 0. smoothing, weights: of forward.
void softmax_cross_entropy_backward(Stream& stream, ConstView probabilities, ConstView labels,
                                    ConstView dloss, float beta, View dlogits, float smoothing = 0,
                                    const ClassWeights& weights = {});

}  // namespace ringlet
