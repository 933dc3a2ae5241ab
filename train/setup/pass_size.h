// Samples of a pass that only evaluates or predicts. Less of large images, whose activations would
// fill the memory. A function of the images alone, so that sums depend on nothing else.
#pragma once

#include <algorithm>
#include <cstdint>

namespace ringlet::train {

/// `usual` for images of up to 3 x 32 x 32 pixels; of larger ones as many as have the same pixels,
/// but 16 at least, or `usual` where that is less.
inline std::int64_t pass_size(std::int64_t usual, std::int64_t pixels) {
  constexpr std::int64_t kSmall = 3 * 32 * 32, kLeast = 16;
  if (pixels <= kSmall) return usual;
  return std::max(std::min(kLeast, usual), usual * kSmall / pixels);
}

}  // namespace ringlet::train
