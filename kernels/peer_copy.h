// Copies from the memory of another device of the same kind.
#pragma once

#include "kernels/device.h"
#include "kernels/tensor.h"

namespace ringlet {

/// y = x, bytes that lie on device `from`, whether or not this device may read them in place
/// (Device::reads_memory_of): where it may not, they go through the host. The same kind of view.
/// Both devices' memory must stay until `stream` has come to it.
void copy_from_device(Stream& stream, DeviceId from, ConstView x, View y);

}  // namespace ringlet
