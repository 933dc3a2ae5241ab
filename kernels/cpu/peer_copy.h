// All memory of the host is cpu:0's.
#pragma once

#include "kernels/cpu/host_copy.h"

namespace ringlet::impl {

inline void copy_from_device(CpuStream& stream, DeviceId, const ConstView& x, const View& y) {
  copy_from_host(stream, x.data(), y);
}

}  // namespace ringlet::impl
