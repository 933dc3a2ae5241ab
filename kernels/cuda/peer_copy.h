#pragma once

#include "kernels/cuda/cuda_device.h"
#include "kernels/tensor.h"

namespace ringlet::impl {

/// Over NVLink or PCIe where the GPUs see each other, else through the host; in stream order.
void copy_from_device(CudaStream& stream, DeviceId from, const ConstView& x, const View& y);

}  // namespace ringlet::impl
