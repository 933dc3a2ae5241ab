// Which elements of an arena take part in weight decay: u8 [ceil(M / kDecayBlock)] for M elements,
// one number for each block of neighbours, 0 where they do not. A byte for 64 of every array costs
// an update no time that could be measured, and it stays one launch whatever the order of the
// parameters is.
#pragma once

#include "kernels/contract.h"
#include "kernels/tensor.h"

namespace ringlet {

/// Elements that share a number: those of a cache line, at which every parameter begins
/// (nn/plan.h).
inline constexpr std::int64_t kDecayBlock = 16;

constexpr std::int64_t decay_blocks(std::int64_t elements) {
  return (elements + kDecayBlock - 1) / kDecayBlock;
}

/// Checks the scale of a gradient, f32 [1], and the decays of `elements`; both may be absent.
inline void require_update_views(const char* operation, const ConstView& scale,
                                 const ConstView& decays, std::int64_t elements) {
  if (!scale.absent()) require_dense(operation, scale, Shape{1});
  if (decays.absent()) return;
  require_dtype(operation, decays, DType::u8);
  require_shape(operation, decays, Shape{decay_blocks(elements)});
}

}  // namespace ringlet
