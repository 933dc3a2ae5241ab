// Where a pooling window lies in one dimension.
#pragma once

#include <algorithm>
#include <cstdint>

namespace ringlet::impl {

struct PoolWindow {
  std::int64_t begin;  // pixels [begin, end) of the image
  std::int64_t end;
  std::int64_t counted;  // pixels of image and padding: what ceil mode has beyond it is not counted
};

/// Output `o`'s window over an image of `extent` pixels. Every window holds at least one of them.
inline PoolWindow pool_window(std::int64_t o, std::int64_t kernel, std::int64_t stride,
                              std::int64_t padding, std::int64_t extent) {
  const std::int64_t begin = o * stride - padding;
  const std::int64_t end = std::min(begin + kernel, extent + padding);
  return {std::max<std::int64_t>(begin, 0), std::min(end, extent), end - begin};
}

}  // namespace ringlet::impl
