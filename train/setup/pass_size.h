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

/// A pass that embeds pairs of pictures, at most.
struct PassOfPairs {
  std::int64_t pairs = 0;
  std::int64_t samples = 0;
  std::int64_t batch = 0;  ///< for PredictorOptions, of which pass_size() makes these samples
};

/// `pixels`: of a picture, over all channels; `usual`: samples of small ones; `each`: of a pair.
inline PassOfPairs pass_of_pairs(std::int64_t pixels, std::int64_t usual, std::int64_t each) {
  const std::int64_t pairs = std::max<std::int64_t>(1, pass_size(usual, pixels) / each);
  std::int64_t batch = pairs * each;
  while (pass_size(batch, pixels) < pairs * each) ++batch;
  return {pairs, pairs * each, batch};
}

}  // namespace ringlet::train
