// MemoryOperations: what a transport launches to move a message between devices' memory, in the
// order of the receiver's stream. Virtual, so that tests can put a device of their own beneath.
#pragma once

#include <span>

#include "kernels/device.h"
#include "kernels/reduce.h"
#include "kernels/tensor.h"

namespace ringlet::comm {

/// All views are of the same kind and do not overlap. They lie on `stream`'s device, except where a
/// function says otherwise.
class MemoryOperations {
 public:
  virtual ~MemoryOperations() = default;
  /// y = x. The stream's device reads x's memory in place.
  virtual void copy(Stream& stream, ConstView x, View y) const;
  /// y = x, which lies on device `from`.
  virtual void copy_from(Stream& stream, DeviceId from, ConstView x, View y) const;
  /// ringlet::reduce(). The stream's device reads and writes all of the memory in place.
  virtual void reduce(Stream& stream, ReduceOp op, std::span<const ConstView> xs,
                      std::span<const View> ys, const ReduceOptions& options) const;
  /// y = op(y, x), by reduce().
  void reduce_into(Stream& stream, ReduceOp op, const ConstView& x, const View& y) const {
    const ConstView xs[] = {y, x};
    const View ys[] = {y};
    reduce(stream, op, xs, ys, {});
  }
};

}  // namespace ringlet::comm
