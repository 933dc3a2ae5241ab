// Where in a run a batch stands. Operations that depend on it read it from device memory, so that a
// captured graph can run again for another batch.
#pragma once

#include <cstdint>

#include "base/host_device.h"
#include "kernels/contract.h"
#include "kernels/tensor.h"

namespace ringlet {

/// Lies in memory as declared here: two 64-bit integers, `epoch` first.
struct BatchPosition {
  std::int64_t epoch = 0;
  std::int64_t first = 0;  ///< position in the epoch of the batch's sample 0
};

/// A number that no two samples of a run share, below 2^40 samples in an epoch and 2^23 epochs.
RINGLET_HOST_DEVICE constexpr std::int64_t sample_number(const BatchPosition& position) {
  return (position.epoch << 40) + position.first;
}

/// A BatchPosition in device memory is a view u8 [16], at a multiple of 8 bytes.
inline Shape batch_position_shape() { return {sizeof(BatchPosition)}; }

inline void require_position(const char* operation, const ConstView& position,
                             At at = At::current()) {
  require_dtype(operation, position, DType::u8, at);
  require_shape(operation, position, batch_position_shape(), at);
}

inline const BatchPosition* position_of(const ConstView& view) {
  return static_cast<const BatchPosition*>(view.data());
}

}  // namespace ringlet
