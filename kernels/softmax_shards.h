// Softmax cross-entropy of logits whose classes are cut over ranks: each rank has the columns of
// its classes, for the samples of all. What softmax_cross_entropy.h says, in parts that ranks
// exchange:
//
//   softmax_shard_forward    of a part's logits, for each sample: m = max z, l = sum of exp(z - m),
//                            t = z of the label, or -infinity where the label is in another part
//   softmax_shards_merge     M = max of all m, L = sum of l exp(m - M), added in the parts' order,
//                            and the sample's loss, log L + M - t
//   softmax_shards_loss      the sum of some samples' losses
//   softmax_shard_backward   dz = beta * dz + dloss * ( exp(z - M) / L - [it is the label] )
//
// Where m leaves the label's logit out (margin_softmax.h), max(m, t) takes its place.
//
// A part without classes has (-infinity, 0, -infinity), which changes nothing. A label that no part
// has makes the loss infinite. A thread has a row: for parts of many classes a kernel of their own
// would be faster.
#pragma once

#include "kernels/stream.h"
#include "kernels/tensor.h"

namespace ringlet {

/// logits f32 [N, K], of the classes from `first` on; labels i32 [N]; part f32 [N, 3]: m, l, t.
void softmax_shard_forward(Stream& stream, ConstView logits, ConstView labels, std::int64_t first,
                           View part);
/// parts f32 [Q, N, 3]; merged f32 [N, 3]: M, L, loss.
void softmax_shards_merge(Stream& stream, ConstView parts, View merged);
/// merged f32 [N, 3]; loss f32 [1], the sum, of no sample 0; sum f32 [1], to which it is added, or
/// absent.
void softmax_shards_loss(Stream& stream, ConstView merged, View loss, View sum = {});
/// merged f32 [N, 3]; dloss f32 [1]; dlogits f32 [N, K].
void softmax_shard_backward(Stream& stream, ConstView logits, ConstView labels, std::int64_t first,
                            ConstView merged, ConstView dloss, float beta, View dlogits);

}  // namespace ringlet
