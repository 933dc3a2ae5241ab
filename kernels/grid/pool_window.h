// Where a pooling window lies in one dimension.
#pragma once

#include <cstdint>

#include "base/host_device.h"

namespace ringlet {

template <class I>
struct PoolWindow {
  I begin;  // pixels [begin, end) of the image
  I end;
  I counted;  // pixels of image and padding: what ceil mode has beyond it is not counted
};

/// Output `o`'s window over an image of `extent` pixels. Every window holds at least one of them.
template <class I>
RINGLET_HOST_DEVICE constexpr PoolWindow<I> pool_window(I o, I kernel, I stride, I padding,
                                                        I extent) {
  const I begin = o * stride - padding;
  const I end = begin + kernel < extent + padding ? begin + kernel : extent + padding;
  return {begin < 0 ? 0 : begin, end < extent ? end : extent, end - begin};
}

}  // namespace ringlet
