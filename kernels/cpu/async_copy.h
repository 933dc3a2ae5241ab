// The CPU's implementations of kernels/async_copy.h. The compute stream runs in place, so copies
// have run when these return.
#pragma once

#include "kernels/cpu/host_copy.h"

namespace ringlet::impl {

inline void enqueue_copy_from_host(CpuStream& stream, const void* host, const View& y) {
  copy_from_host(stream, host, y);
}
inline void enqueue_copy_to_host(CpuStream& stream, const ConstView& x, void* host) {
  copy_to_host(stream, x, host);
}

}  // namespace ringlet::impl
