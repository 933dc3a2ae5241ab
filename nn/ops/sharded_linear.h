// Differentiable product with a matrix whose rows are cut over ranks (nn/placement.h), for the
// samples of all ranks, and softmax cross-entropy of what comes out:
//
//   gather      the samples' features of all ranks                        [ranks, most, I]
//   product     each rank's rows times the features of each rank's samples
//   softmax     largest logit and sum of exponentials over the ranks (kernels/softmax_shards.h)
//   backward    each rank's rows have their gradient at once, of all samples; those of the features
//               are summed over the ranks, and each rank takes its own samples'
//
// Each product is of one rank's samples and one part of the rows (AxisPosition). So in exact mode,
// where a rank's pass is a logical shard, all products and sums are the same for any number of
// ranks.
#pragma once

#include "nn/axis.h"
#include "nn/parameter.h"
#include "nn/variable.h"

namespace ringlet::nn {

/// Where the logits of a rank's samples for a part of this rank's rows lie: block (rank, part) is
/// dense, [samples, rows of the part], in f32 [ranks * most, rows held].
struct ShardBlocks {
  AxisPosition position;
  std::int64_t rows = 0;  ///< of the whole matrix
  std::int64_t most = 0;  ///< Axis::most()

  ShardBlocks(const Axis& axis, std::int64_t all_rows)
      : position(axis.position()), rows(all_rows), most(axis.most()) {}
  /// Part `index` of this rank's.
  Rows part(int index) const {
    return position.part(rows, position.rank * position.parts_of_rank() + index);
  }
  Rows held() const { return position.held(rows, position.rank); }
  View block(const View& logits, int rank, int index, std::int64_t samples) const;
};

/// Rows [first, first + count) of a matrix, whatever its rank says of them.
template <class V>
V rows_of_matrix(const V& matrix, std::int64_t first, std::int64_t count, std::int64_t columns) {
  return matrix.reshaped({matrix.count()})
      .slice(first * columns, (first + count) * columns)
      .reshaped({count, columns});
}

/// x [N, I] -> where nothing is cut, [N, O] in f32; else the logits of all ranks' samples for this
/// rank's rows, as ShardBlocks has them. weight: [O, I], Placement::rows.
Variable sharded_linear(const Variable& x, Parameter& weight);

/// logits of sharded_linear(); targets i32 [N], of this rank's samples -> f32 [1], the sum of their
/// losses. `rows`: outputs, of all ranks. `sum`: as smoothed_cross_entropy() has it.
Variable sharded_cross_entropy(const Variable& logits, const Variable& targets, std::int64_t rows,
                               const View& sum = {});

}  // namespace ringlet::nn
