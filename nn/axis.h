// Axis: what an operation sees of the ranks over which a parameter's rows are cut, along an axis of
// the mesh. train/ implements it.
//
// All ranks make the same calls in the same order. A rank without samples runs the model as well,
// on a stand-in sample that counts for nothing: samples(position().rank) is 0.
#pragma once

#include <cstdint>

#include "kernels/stream.h"
#include "kernels/tensor.h"
#include "nn/placement.h"

namespace ringlet::nn {

class Axis {
 public:
  virtual ~Axis() = default;
  virtual const AxisPosition& position() const = 0;
  /// Samples of a rank in the pass that runs.
  virtual std::int64_t samples(int rank) const = 0;
  /// The most that any rank has in any pass of this kind.
  virtual std::int64_t most() const = 0;
  /// all = `mine` of rank 0, of rank 1, ... `mine` has as many bytes on each. Any type.
  virtual void gather(Stream& compute, ConstView mine, View all, const char* name) = 0;
  /// numbers (f32) = their sums over the ranks, the same bits on each; in exact mode added in the
  /// tree of the logical shards.
  virtual void sum(Stream& compute, View numbers, const char* name) = 0;
};

}  // namespace ringlet::nn
