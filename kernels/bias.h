// Adds one number per channel to every sample and pixel.   y[n,c,...] = x[n,c,...] + b[c]
//
// Backward often comes with what lies behind the bias, a ReLU and 2 x 2 average pooling: then one
// pass over memory does it all. The bits are those of the operations one after another; with narrow
// activations, those of the operations in f32 between one rounding and the next: db is the sum of
// what is not rounded yet.
//
// x, y, a, dy and dz are activations (kernels/tensor.h); b and db are f32.
#pragma once

#include "kernels/stream.h"
#include "kernels/tensor.h"

namespace ringlet {

/// x and y [N, C] or [N, C, H, W], the same layout (any), may be the same memory; b [C].
void bias_forward(Stream& stream, ConstView x, ConstView b, View y);
/// db[c] = beta * db[c] + sum over n, h, w of dy[n,c,h,w].   db [C].
void bias_backward(Stream& stream, ConstView dy, float beta, View db);

/// For a = relu(x + b):   dz = dy * [a > 0],   db = beta * db + sum over n, h, w of dz.
/// a, dy and dz as x above; dz may be dy's memory.
void bias_relu_backward(Stream& stream, ConstView a, ConstView dy, View dz, float beta, View db);

/// For a = relu(x + b), y = avg_pool2d(a) with the default Pool2dSpec (pool2d.h): the memory of a
/// [N, C, H, W] becomes dz = avg_pool2d_backward(dy) * [a > 0], and db as above, or absent.
/// dy [N, C, H/2, W/2]; layout nchw or nhwc. With a in nhwc, dy may be in nchw.
void bias_relu_avg_pool2d_backward(Stream& stream, ConstView dy, View a, float beta, View db);

}  // namespace ringlet
