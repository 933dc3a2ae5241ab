// The CPU's implementations of kernels/host_copy.h, and copy_from_device() of elementwise.h.
// All are copies in the host's memory, which is cpu:0's, and have run on return.
#include <cstring>

#include "kernels/cpu/cpu_device.h"
#include "kernels/tensor.h"

namespace ringlet::impl {

void copy_from_host(CpuStream&, const void* host, const View& y) {
  if (y.bytes() > 0) std::memcpy(y.data(), host, static_cast<std::size_t>(y.bytes()));
}

void copy_to_host(CpuStream&, const ConstView& x, void* host) {
  if (x.bytes() > 0) std::memcpy(host, x.data(), static_cast<std::size_t>(x.bytes()));
}

void enqueue_copy_from_host(CpuStream& stream, const void* host, const View& y) {
  copy_from_host(stream, host, y);
}

void enqueue_copy_to_host(CpuStream& stream, const ConstView& x, void* host) {
  copy_to_host(stream, x, host);
}

void copy_from_device(CpuStream& stream, DeviceId, const ConstView& x, const View& y) {
  copy_from_host(stream, x.data(), y);
}

}  // namespace ringlet::impl
