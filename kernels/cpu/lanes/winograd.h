// Convolutions of 3 x 3 with stride 1 by Winograd's method, F(4x4, 3x3): a quarter of the
// multiplications (winograd_transforms.h).
//
//   1. weights to their 36 points, once
//   2. tiles of 6 x 6 inputs to 36 points, some tiles at a time, so that points stay in a cache
//   3. 36 matrix products over the channels: [outputs, channels] x [channels, 16 samples a tile]
//   4. 36 points to tiles of 4 x 4 outputs
//
// The data gradient is the same with turned weights. For the filter gradient, inputs' and outputs'
// tiles are multiplied over all samples, and the sums go to weights once.
#pragma once

#include "kernels/activation.h"
#include "kernels/conv2d.h"
#include "kernels/cpu/cpu_device.h"

namespace ringlet::lanes {

/// Whether the method is for this convolution, and saves enough. w and y are its weights' and its
/// result's shapes.
bool winograd_suits(const Conv2dSpec& spec, const Shape& w, const Shape& y);

// As in lanes.h.
void winograd_forward(CpuStream& stream, const Conv2dSpec& spec, ConstView x, ConstView w,
                      ConstView bias, Activation activation, View y);
void winograd_backward_data(CpuStream& stream, const Conv2dSpec& spec, ConstView w, ConstView dy,
                            float beta, View dx);
void winograd_backward_filter(CpuStream& stream, const Conv2dSpec& spec, ConstView x, ConstView dy,
                              float beta, View dw);

}  // namespace ringlet::lanes
