// Copies from the memory of another device of the same kind.
#pragma once

#include "kernels/device.h"
#include "kernels/tensor.h"

namespace ringlet {

/// y = x, which lies on device `from`. Where y's device may not read that memory in place
/// (Device::reads_memory_of), the bytes go through the host. The same kind of view. Both devices'
/// memory must stay until `stream` has run the copy.
void copy_from_device(Stream& stream, DeviceId from, ConstView x, View y);

}  // namespace ringlet
