// Resampling with antialiasing, bit for bit Pillow's Image.resize(size, BILINEAR) on RGB images.
//
//   s = in / out, f = max(1, s)                the triangle is as wide as the reduction
//   c = (x + 1/2) s                            the centre of output x
//   taps from int(c - f + 1/2) to int(c + f + 1/2), cut at the image's edges
//   weight of tap t: max(0, 1 - |t + 1/2 - c| / f), divided by their sum
//
// Weights are rounded to 22 bits behind the point. Each pass rounds half up to bytes, first along
// the rows, then along the columns. Weights are cut at the edges, not pixels repeated.
//
// Source: Pillow, src/libImaging/Resample.c. torchvision resizes PIL images with it.
#pragma once

#include <cstdint>
#include <vector>

#include "data/images/rgbx.h"

namespace ringlet::data {

/// The taps of each output along one axis, their weights times 2^22.
struct ResampleWeights {
  int taps = 0;                       ///< of each output, those of weight 0 included
  std::vector<int> first;             ///< [outputs]: the input of the first tap
  std::vector<std::int32_t> weights;  ///< [outputs, taps]
};

/// Those of the outputs [begin, end) when `in` inputs become `out` outputs. Written into `result`,
/// whose memory is used again.
void find_weights(int in, int out, int begin, int end, ResampleWeights& result);

/// Where the output goes.
struct ResampleTarget {
  std::uint8_t* planes = nullptr;  ///< [channels, window.height, window.width]
  int channels = 3;                ///< the first 1 to 4 of a pixel's bytes
  bool mirrored = false;           ///< left and right are swapped
};

/// Owns the memory between the passes, so that resampling picture after picture allocates nothing
/// once it has seen the largest. For one thread.
class Resampler {
 public:
  /// What `image` resized to `width` x `height` shows in `window`. To resize a part of a picture,
  /// as Image.crop() before Image.resize() does, give its cropped() view: taps do not look outside.
  void resize(const RgbxView& image, int width, int height, const Box& window,
              const ResampleTarget& target);

 private:
  ResampleWeights across_, down_;
  std::vector<std::uint8_t> rows_;  // [rows that the second pass needs, window.width, 4]
  std::vector<std::uint8_t> line_;  // one output row
};

/// Writes `image` as it is, plane by plane.
void write_planes(const RgbxView& image, const ResampleTarget& target);

}  // namespace ringlet::data
