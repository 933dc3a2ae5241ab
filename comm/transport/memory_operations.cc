#include "comm/transport/memory_operations.h"

#include "kernels/elementwise.h"

namespace ringlet::comm {

void MemoryOperations::copy(Stream& stream, ConstView x, View y) const {
  ringlet::copy(stream, x, y);
}

void MemoryOperations::copy_from(Stream& stream, DeviceId from, ConstView x, View y) const {
  copy_from_device(stream, from, x, y);
}

void MemoryOperations::reduce(Stream& stream, ReduceOp op, std::span<const ConstView> xs,
                              std::span<const View> ys, const ReduceOptions& options) const {
  ringlet::reduce(stream, op, xs, ys, options);
}

}  // namespace ringlet::comm
