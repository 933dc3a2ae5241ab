// MemoryOperations: what a transport launches to move a message between devices' memory, in the
// order of the receiver's stream. Virtual, so that tests can put a device of their own beneath.
#pragma once

#include "kernels/device.h"
#include "kernels/tensor.h"

namespace ringlet::comm {

/// All views are of the same kind and do not overlap; those of `stream`'s device but for what is
/// said below.
class MemoryOperations {
 public:
  virtual ~MemoryOperations() = default;
  /// y = x. The stream's device reads x's memory in place.
  virtual void copy(Stream& stream, ConstView x, View y) const;
  /// y = x, which lies on device `from`.
  virtual void copy_from(Stream& stream, DeviceId from, ConstView x, View y) const;
  /// y += x, f32. The stream's device reads x's memory in place.
  virtual void accumulate(Stream& stream, ConstView x, View y) const;
};

}  // namespace ringlet::comm
