// Operations on every stored element, whatever shape and layout (lanes beyond the batch included):
// copies, casts between kinds of floats, sums, multiples, and
//
//   ReLU      y = max(0, x)            dx = beta * dx + dy * [y > 0]
//   sigmoid   y = 1 / (1 + exp(-x))    dx = beta * dx + dy * y (1 - y)
//   tanh      y = tanh(x)              dx = beta * dx + dy * (1 - y y)
//
// "Activations" are those of kernels/tensor.h.
#pragma once

#include "kernels/device.h"
#include "kernels/stream.h"
#include "kernels/tensor.h"

namespace ringlet {

/// Every element becomes `value`. f32 or i32.
void fill(Stream& stream, float value, View y);
/// y = x; the same kind. The memory must not overlap.
void copy(Stream& stream, ConstView x, View y);
/// y = x, which lies on device `from`. Where y's device may not read that memory in place
/// (Device::reads_memory_of), the bytes go through the host. The same kind of view. Both devices'
/// memory must stay until `stream` has run the copy.
void copy_from_device(Stream& stream, DeviceId from, ConstView x, View y);
/// y = x. One of them is f32, the other f16 or bf16, of the same shape and layout. Their memory
/// must not overlap. Narrowing rounds to nearest, ties to even; a number beyond y's largest becomes
/// infinite, a NaN stays one (narrow_floats.h). Widening is exact. Gradients go through it before
/// and after they travel as sixteen bits (train/sync/gradient_sync.h).
void cast(Stream& stream, ConstView x, View y);
/// y += x; f32, the same kind.
void accumulate(Stream& stream, ConstView x, View y);
/// y = a + b; activations, the same kind; y may be a's or b's memory.
void add(Stream& stream, ConstView a, ConstView b, View y);
/// y = alpha * x + beta * y; activations, the same kind; with beta = 0, y is not read and may be x.
void scale(Stream& stream, float alpha, ConstView x, float beta, View y);
/// ReLU: activations, the same kind; y may be x's memory. A NaN passes through, so that a broken
/// number is seen where it arises.
void relu_forward(Stream& stream, ConstView x, View y);
/// The same kind as well; with beta = 0, dx may be dy's memory.
void relu_backward(Stream& stream, ConstView y, ConstView dy, float beta, View dx);
/// As ReLU.
void sigmoid_forward(Stream& stream, ConstView x, View y);
void sigmoid_backward(Stream& stream, ConstView y, ConstView dy, float beta, View dx);
/// As ReLU.
void tanh_forward(Stream& stream, ConstView x, View y);
void tanh_backward(Stream& stream, ConstView y, ConstView dy, float beta, View dx);

}  // namespace ringlet
