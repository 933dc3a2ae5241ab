// Where a pooling window lies in one dimension.
#pragma once

#include <cstdint>

#include "kernels/host_device.h"

namespace ringlet {

struct PoolWindow {
  std::int64_t begin;  // pixels [begin, end) of the image
  std::int64_t end;
  std::int64_t counted;  // pixels of image and padding: what ceil mode has beyond it is not counted
};

/// Output `o`'s window over an image of `extent` pixels. Every window holds at least one of them.
RINGLET_HOST_DEVICE constexpr PoolWindow pool_window(std::int64_t o, std::int64_t kernel,
                                                     std::int64_t stride, std::int64_t padding,
                                                     std::int64_t extent) {
  const std::int64_t begin = o * stride - padding;
  const std::int64_t end = begin + kernel < extent + padding ? begin + kernel : extent + padding;
  return {begin < 0 ? 0 : begin, end < extent ? end : extent, end - begin};
}

}  // namespace ringlet
