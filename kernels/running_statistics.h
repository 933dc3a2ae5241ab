// Running statistics of batch norm, as sums over the world: what a step's micro-batches say of a
// layer with C channels is gathered in an update, f32 [2 C + 3], which adds up over shards and
// ranks like a gradient:
//
//   [0, C)     A, for the mean        sum over micro-batches of f * mean[c]
//   [C, 2 C)   A, for the variance    sum of f * squares[c] / (count - 1): unbiased
//   2 C        K                      sum over shards of share * (micro-batches of the shard)
//   2 C + 1    B                      sum of f
//   2 C + 2    D                      sum over shards of share * (1 - momentum)^micro-batches
//
// A micro-batch's share is its samples over the step's samples in the world, a shard's the sum of
// its micro-batches'. Shares add up to 1. f = momentum * share, and each later micro-batch of the
// shard multiplies A and B by (1 - momentum) before it adds its own: PyTorch's order of momentum.
// Then, once a step,
//
//   running = D * running + (1 - D) * A / B      batches += K
//
// One shard with one micro-batch is PyTorch's rule, (1 - momentum) running + momentum * batch. A
// layer that did not run has B = 0, and keeps what it has.
#pragma once

#include "kernels/stream.h"
#include "kernels/tensor.h"

namespace ringlet {

/// Numbers of an update of a layer with so many channels.
constexpr std::int64_t running_update_size(std::int64_t channels) { return 2 * channels + 3; }

/// A micro-batch among those of its shard and step.
struct RunningSpec {
  float momentum = 0.1F;
  double count = 2;    ///< values of a channel behind the moments, above 1
  double share = 1;    ///< this micro-batch's samples, over those of the step
  double so_far = 1;   ///< those of the shard until now, this micro-batch's too
  double batches = 1;  ///< micro-batches of the shard until now
};

/// Adds the moments (f32 [2, C], kernels/batch_norm.h) of a micro-batch to its shard's update,
/// which is zeros before the first.
void running_statistics_track(Stream& stream, const RunningSpec& spec, ConstView moments,
                              View update);

/// What happens to an element of the updates, for running_statistics_commit().
struct RunningTarget {
  static constexpr std::int32_t kNothing = -1;
  /// Index in the running values, kNothing, or -2 - (index in the counters).
  std::int32_t target = kNothing;
  std::int32_t scalars = 0;  ///< where the layer's K, B and D begin in the updates
};

/// All layers at once. updates f32 [U], targets i32 [U, 2] (RunningTarget), values f32 [V],
/// counters i32 [L]. scale: as the optimiser's update has it (sgd.h), 0 where the step is skipped:
/// then nothing changes; may be absent.
void running_statistics_commit(Stream& stream, ConstView updates, ConstView targets, View values,
                               View counters, ConstView scale = {});

}  // namespace ringlet
