// CrossReplica: what a model sees of the other replicas, where the statistics of a batch are to be
// those of the whole world's (synchronised batch norm). train/ implements it.
//
// All ranks make the same calls in the same order. A rank without samples runs the model as well,
// on a stand-in sample that counts for nothing: counts() is false, it brings no moments, and no
// gradient leaves a batch norm of it.
#pragma once

#include <cstdint>

#include "kernels/stream.h"
#include "kernels/tensor.h"

namespace ringlet::nn {

class CrossReplica {
 public:
  virtual ~CrossReplica() = default;
  /// Samples of this micro-batch in the whole world.
  virtual std::int64_t samples() const = 0;
  /// Whether this rank's batch is one of samples.
  virtual bool counts() const = 0;
  /// moments = those of all ranks' parts, as batch_norm_merge() has it, merged in the order of the
  /// ranks. `part`: f32 [2 C + 1], this rank's.
  virtual void merge_moments(Stream& compute, ConstView part, std::int64_t pixels,
                             View moments) = 0;
  /// numbers = their sums over the ranks, the same bits on each.
  virtual void sum(Stream& compute, View numbers) = 0;
};

}  // namespace ringlet::nn
