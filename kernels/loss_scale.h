// The scale of the loss where activations are f16, which ends at 65504 and begins at 6e-8:
// gradients are of scale * loss, and are divided by the scale in f32: exactly, by a power of two.
//
//   a step    loss_scale_begin    backward from scale * seed, with the rates of the step
//             backward, sum over the world, l2_norm
//             loss_scale_end      what the optimiser multiplies the gradient by, and the next scale
//
// A step whose summed gradient has a broken number is skipped: the factor is 0, and an optimiser
// changes nothing then (sgd.h, adamw.h), nor do running statistics. The scale is halved, 1 at
// least. After growth_interval good steps in a row it is doubled, while that is finite. All ranks
// have the same sums, so they decide alike without asking each other; and the decision stays on the
// device, so that a captured step makes it as well.
//
// The state is f32 [kLossScaleState]: the scale, good steps in a row, skips in a row, skips of the
// whole run. Which step of a schedule comes next depends on how many were skipped, and the host may
// not know yet: it sends the rates for each number that is possible.
//
// Source: torch.amp.GradScaler, which has no floor and decides on each rank for itself.
#pragma once

#include "kernels/stream.h"
#include "kernels/tensor.h"

namespace ringlet {

inline constexpr std::int64_t kLossScaleState = 4;

/// state as above. newest f32 [1]: the row of `table` if no step of the run was skipped. Then
/// seed (f32 [1]) becomes scale * seed, and rates (f32 [W]) row newest - skips of table
/// (f32 [R, W]); beyond its ends, the nearest.
void loss_scale_begin(Stream& stream, ConstView state, ConstView newest, ConstView table, View seed,
                      View rates);

struct LossScaleSpec {
  int growth_interval = 2000;
  float most = 0;  ///< norm that a longer gradient is shortened to, as in l2_norm.h; 0: any
};

/// norm (f32 [1]): of the summed gradient, times the scale; it becomes that of the gradient, or
/// stays broken. factor (f32 [2]) = 1 / scale, shortened to spec.most, and 1 / scale; or 0 and 0
/// for a broken norm. state becomes that of the next step. told (f32 [2]): skips in a row, this
/// step's included, and the scale that it had.
void loss_scale_end(Stream& stream, const LossScaleSpec& spec, View norm, View state, View factor,
                    View told);

}  // namespace ringlet
