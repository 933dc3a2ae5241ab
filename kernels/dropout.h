// Dropout: with probability p a feature of a sample becomes 0, the others are divided by 1 - p.
//
//   y = x * m
//   dx = beta * dx + dy * m
//   m[n, f] = [uniform(key, first_sample + n, f) >= p] / (1 - p)
//
// The mask is recomputed in backward from the same counters. A sample is known by its position in
// the epoch, not by replica or position in a batch. So the mask does not depend on how many
// replicas share the batch, nor on the layout.
#pragma once

#include <cstdint>

#include "kernels/batch_position.h"
#include "kernels/stream.h"
#include "kernels/tensor.h"

namespace ringlet {

struct DropoutSpec {
  float probability = 0.5F;       ///< p in [0, 1)
  std::uint64_t key = 0;          ///< of (seed, epoch, operation)
  std::int64_t first_sample = 0;  ///< position in the epoch of the batch's sample 0
  /// Where present, a BatchPosition in device memory. Its sample_number() is added to first_sample,
  /// so that a captured graph gets new masks. The key is then of (seed, operation), since the epoch
  /// is part of that number.
  ConstView position = {};
};

/// uniform(key, s, f) is word f % 4 of philox(key, f / 4, s), as uniform01(). f is the feature's
/// index in C, H, W order whatever the layout. All views are activations
/// (kernels/tensor.h) [N, ...], any layout.
void dropout_forward(Stream& stream, const DropoutSpec& spec, ConstView x, View y);
void dropout_backward(Stream& stream, const DropoutSpec& spec, ConstView dy, float beta, View dx);

}  // namespace ringlet
