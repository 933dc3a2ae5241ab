#pragma once

#include "kernels/cpu/cpu_device.h"
#include "kernels/tensor.h"

namespace ringlet::impl {

void copy_from_host(CpuStream& stream, const void* host, const View& y);
void copy_to_host(CpuStream& stream, const ConstView& x, void* host);

}  // namespace ringlet::impl
