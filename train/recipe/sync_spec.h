// How gradients travel between the replicas.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "kernels/tensor.h"
#include "train/recipe/option.h"

namespace ringlet::train {

/// In which type. It decides what is learnt.
struct GradientSpec {
  DType grad_dtype = DType::f32;  ///< f32, f16 or bf16
  /// Of that type between machines only, and f32 inside one: "bf16-between".
  bool narrow_between = false;

  bool operator==(const GradientSpec&) const = default;
};

/// "f32", "f16", "bf16" or "bf16-between": what --grad-dtype says.
std::string grad_dtype_name(const GradientSpec& spec);

std::vector<Option<GradientSpec>> gradient_options();

/// In which pieces, and when. What is learnt does not depend on it beyond rounding.
struct BucketSpec {
  std::int64_t bucket_kb = -1;        ///< KiB; negative: see with_bucket_sizes()
  bool overlap = true;                ///< start buckets during backward; else all at its end
  std::int64_t first_bucket_kb = -1;  ///< least size of the first bucket; negative: bucket_kb
};

/// Without one for `overlap`.
std::vector<Option<BucketSpec>> bucket_options();

}  // namespace ringlet::train
