// Operations on every stored element, whatever shape and layout (lanes beyond the batch included).
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
/// y += x; f32, the same kind.
void accumulate(Stream& stream, ConstView x, View y);
/// y = a + b; activations (kernels/tensor.h), the same kind; y may be a's or b's memory.
void add(Stream& stream, ConstView a, ConstView b, View y);
/// y = alpha * x + beta * y; activations, the same kind; with beta = 0, y is not read and may be x.
void scale(Stream& stream, float alpha, ConstView x, float beta, View y);

}  // namespace ringlet
