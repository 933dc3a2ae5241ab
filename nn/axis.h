// Axis: what an operation sees of the ranks over which a parameter's rows are cut, along an axis of
// the mesh. train/ implements it.
//
// All ranks make the same calls in the same order. A rank without samples runs the model as well,
// on a stand-in sample that counts for nothing: samples(position().rank) is 0.
#pragma once

#include <cstdint>
#include <numeric>

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
  /// Exact mode, in training: which of a step's passes runs, from 0. All of a logical shard, then
  /// all of the next one of the rank's.
  virtual int pass() const { return 0; }
  /// Whether no rank has samples in a later one.
  virtual bool is_last() const { return true; }
  /// Samples of a rank in any of them.
  virtual std::int64_t samples_in(int /*pass*/, int rank) const { return samples(rank); }
  /// The most that any rank has in any pass of this kind.
  virtual std::int64_t most() const = 0;
  /// all = `mine` of rank 0, of rank 1, ... `mine` has as many bytes on each. Any type.
  virtual void gather(Stream& compute, ConstView mine, View all, const char* name) = 0;
  /// Part r of `in` = part position().rank of rank r's `out`: of both, one of as many equal parts
  /// as there are ranks. Any type.
  virtual void exchange(Stream& compute, ConstView out, View in, const char* name) = 0;
  /// numbers (f32) = their sums over the ranks, the same bits on each; in exact mode added in the
  /// tree of the logical shards.
  virtual void sum(Stream& compute, View numbers, const char* name) = 0;
  /// The same of numbers that are cut into equal parts, where each rank asks for its own part alone
  /// and sends half as much. The others' are unspecified afterwards. A part has a multiple of
  /// kGrain numbers.
  virtual void sum_own(Stream& compute, View numbers, const char* name) = 0;

  static constexpr std::int64_t kGrain = 32;
  /// The fewest rows of a part for sum_own() that has `rows` of so many columns.
  static std::int64_t rows_of_part(std::int64_t rows, std::int64_t columns) {
    const std::int64_t step = kGrain / std::gcd(kGrain, columns);
    return (rows + step - 1) / step * step;
  }
};

}  // namespace ringlet::nn
