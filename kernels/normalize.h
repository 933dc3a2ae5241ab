// Bytes to normalised floats, and a change of layout.
//
//   y[n,c,h,w] = (x[n,c,h,w] / 255 - mean) / deviation
#pragma once

#include "kernels/stream.h"
#include "kernels/tensor.h"

namespace ringlet {

struct Normalization {
  float mean = 0;
  float deviation = 1;
};

/// x u8 [N, C, H, W] nchw, y f32 of the same shape, any layout (lanes beyond N get 0).
void normalize_forward(Stream& stream, const Normalization& normalization, ConstView x, View y);

/// y = x in y's layout. f32, the same shape; lanes beyond N get 0.
void relayout(Stream& stream, ConstView x, View y);

}  // namespace ringlet
