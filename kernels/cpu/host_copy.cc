#include "kernels/cpu/host_copy.h"

#include <cstring>

namespace ringlet::impl {

void copy_from_host(CpuStream&, const void* host, const View& y) {
  if (y.bytes() > 0) std::memcpy(y.data(), host, static_cast<std::size_t>(y.bytes()));
}

void copy_to_host(CpuStream&, const ConstView& x, void* host) {
  if (x.bytes() > 0) std::memcpy(host, x.data(), static_cast<std::size_t>(x.bytes()));
}

}  // namespace ringlet::impl
