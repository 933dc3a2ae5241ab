// Convolution, ReLU and 2 x 2 average pooling with stride 2 as one operation.
//
//   a = relu(conv2d(x, w) + b)
//   y[n,o,i,j] = (a[2i,2j] + a[2i,2j+1] + a[2i+1,2j] + a[2i+1,2j+1]) / 4
//
// The activations a are four times as large as y, and each pass over them costs about as much as
// the arithmetic of a small convolution. Here they never reach memory: forward keeps one bit for
// each, whether it is positive, which is all that the gradients need. Where the convolution's
// result has an odd height or width, its last row or column is not pooled, so it is not computed at
// all.
//
// Results are those of convolution, ReLU and pooling (floor) one after another, up to rounding.
// x, y and their gradients are activations (kernels/tensor.h) in the layout `lanes`; w is of their
// type, the bias, dw and db are f32. The mask is of what is not rounded yet.
#pragma once

#include "kernels/conv2d.h"
#include "kernels/device.h"
#include "kernels/stream.h"
#include "kernels/tensor.h"

namespace ringlet {

/// True where the operation exists: layout lanes, on the CPU (and in a dry run). Any spec.
bool conv2d_relu_avg_pool2d_supported(DeviceKind device, Layout layout, const Conv2dSpec& spec);

/// [N, O, OH / 2, OW / 2] (floor), with OH and OW from conv2d_output_shape(). Throws ContractError
/// when nothing is left.
Shape conv2d_relu_avg_pool2d_output_shape(const Conv2dSpec& spec, const Shape& x, const Shape& w);

/// Shape of the mask, u8 [8 * ceil(N/16) * O * PH * PW], for y [N, O, PH, PW]. It holds u16 numbers
/// [ceil(N/16)][O][PH][PW][2][2], a bit a sample: bit l of number [b][o][i][j][r][s] says whether
/// a[16 b + l, o, 2i+r, 2j+s] > 0.
Shape conv2d_relu_avg_pool2d_mask_shape(const Shape& y);

/// x [N, C, H, W], w [O, C/groups, KH, KW], bias [O] or absent, y and mask as above. This and the
/// two below throw DeviceError on a device without the operation.
void conv2d_relu_avg_pool2d_forward(Stream& stream, const Conv2dSpec& spec, ConstView x,
                                    ConstView w, ConstView bias, View y, View mask);

/// dx = beta * dx + (gradient with respect to x).   dy [N, O, PH, PW], dx [N, C, H, W].
void conv2d_relu_avg_pool2d_backward_data(Stream& stream, const Conv2dSpec& spec, ConstView w,
                                          ConstView dy, ConstView mask, float beta, View dx);

/// dw = beta_dw * dw + (gradient with respect to w), and the same for db [O], which may be absent.
void conv2d_relu_avg_pool2d_backward_filter(Stream& stream, const Conv2dSpec& spec, ConstView x,
                                            ConstView dy, ConstView mask, float beta_dw, View dw,
                                            float beta_db, View db);

}  // namespace ringlet
