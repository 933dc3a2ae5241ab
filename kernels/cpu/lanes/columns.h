// Convolutions as matrix products, for any kernel, stride, padding and dilation: what a position's
// outputs see is copied together first, zeros for the padding, some positions at a time, so that it
// stays in a cache. gather.h needs no copy, but walks through all channels of an image for a few
// outputs; with many channels that comes from far.
// With i for a position:
//
//   forward          y[o, i]  = sum over (c, tap) of w[o, c, tap] * columns[c, tap, i]
//   data gradient    dx[c, i] = sum over (o, tap) of w[o, c, tap] * columns[o, tap, i]
//   filter gradient  dw[o, c, tap] = sum over i of dy[o, i] * columns[c, tap, i]
//
// With a stride, positions of dx see taps of several kinds: one product for each.
#pragma once

#include "kernels/activation.h"
#include "kernels/conv2d.h"
#include "kernels/cpu/cpu_device.h"

namespace ringlet::lanes {

/// Whether there are enough channels for copying to pay. w [O, C/groups, KH, KW].
bool columns_suit(const Conv2dSpec& spec, const Shape& w);
/// The same for the filter gradient, where what counts is terms: a large kernel has many.
bool columns_suit_filter(const Conv2dSpec& spec, const Shape& w);

// As in lanes.h.
void columns_forward(CpuStream& stream, const Conv2dSpec& spec, ConstView x, ConstView w,
                     ConstView bias, Activation activation, View y);
void columns_backward_data(CpuStream& stream, const Conv2dSpec& spec, ConstView w, ConstView dy,
                           float beta, View dx);
void columns_backward_filter(CpuStream& stream, const Conv2dSpec& spec, ConstView x, ConstView dy,
                             float beta, View dw);

}  // namespace ringlet::lanes
