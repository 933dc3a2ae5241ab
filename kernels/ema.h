// An exponential moving average of numbers:
//
//   mean += share * (value - mean)          share = 1 - decay
//
// The share is read from device memory, so that a captured graph can run with changing ones.
#pragma once

#include "kernels/stream.h"
#include "kernels/tensor.h"

namespace ringlet {

/// share f32 [1]. value, mean f32 [M]. scale: as the optimiser's update has it (sgd.h), 0 where the
/// step is skipped: then nothing changes; may be absent.
void ema_update(Stream& stream, ConstView share, ConstView value, View mean, ConstView scale = {});

}  // namespace ringlet
