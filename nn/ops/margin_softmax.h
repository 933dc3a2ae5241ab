// Differentiable softmax cross-entropy over cosines with a margin (kernels/margin_softmax.h), of
// embeddings against the centres of classes, whose rows are cut over ranks (nn/placement.h):
//
//   gather      the samples' embeddings and labels of all ranks             [ranks, most, D]
//   forward     each rank's rows times the embeddings of each rank's samples, a block of classes
//               at a time; largest logit and sum of exponentials, over blocks, then over ranks:
//               each rank joins all ranks' of its own samples, and tells the others
//   backward    each rank's rows have their gradient at once, of all samples; of the embeddings'
//               each rank asks for the sum of its own samples' over the ranks
//
// Where the centres are sampled (Parameter::sampling), a training pass works on a copy of the rows
// that are listed instead, and has a gradient of these alone. The own class of each sample is to be
// among them: it has no logit else.
//
// In exact mode the gradient of the rows is the sum of those of all logical shards of a step, in
// one tree. It is made in the last pass that has samples, a block of rows after another, from what
// all passes have left (Parameter::adds_shards): so no shard has a gradient of all rows for itself.
//
// Products of all samples and all rows of this rank are kept for backward where they are few, and
// else made again: there is never more than a block of them. In exact mode those of a whole step
// are kept where they are few, else they are made again for the gradient of the rows. Each product
// is of one rank's samples and a block of one part of the rows, in any case, so in exact mode all
// bits are the same for any number of ranks.
#pragma once

#include "kernels/margin_softmax.h"
#include "nn/parameter.h"
#include "nn/variable.h"

namespace ringlet::nn {

/// Bytes of products that are kept for backward at most, of a pass and of a step.
inline constexpr std::int64_t kKeptProducts = 256LL << 20;
/// Classes whose products are made at once.
inline constexpr std::int64_t kClassesOfBlock = 4096;

/// Whether a training pass keeps its products: of `samples` of all ranks with `rows` of this one.
constexpr bool keeps_products(std::int64_t samples, std::int64_t rows,
                              std::int64_t kept = kKeptProducts) {
  return samples * rows * 4 <= kept;
}

/// Where a pass adds what it finds; absent views are left alone.
struct MarginSums {
  View loss{};   ///< f32 [1]: the sum of this rank's losses
  View right{};  ///< i32 [2]: its samples whose own class is the nearest; those without a length
  /// f32 [4], in training: margin_angles(). Those to own centres are of all ranks' samples whose
  /// centres this rank has, the others of this rank's samples: so each counts once, over the ranks.
  View angles{};
};

/// x [N, D], activations of any type; centres [C, D], Placement::rows; labels i32 [N] below C ->
/// f32 [1], the sum of the losses of this rank's samples. In evaluation mode without margins and
/// filter.
Variable margin_softmax(const Variable& x, Parameter& centres, const Variable& labels,
                        const MarginSpec& spec, const MarginSums& sums = {},
                        std::int64_t kept = kKeptProducts);

}  // namespace ringlet::nn
