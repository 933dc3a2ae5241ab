#include "data/images/centre_crop.h"

#include <algorithm>
#include <cmath>

namespace ringlet::data {

int resized_short_edge(int size) { return size * 8 / 7; }

void centre_crop(const RgbxView& image, int size, Resampler& resampler,
                 const ResampleTarget& target) {
  if (image.width == size && image.height == size) return write_planes(image, target);
  const std::int64_t edge = resized_short_edge(size);
  const auto resized = [&](int side) {
    return static_cast<int>(edge * side / std::min(image.width, image.height));
  };
  const int width = resized(image.width), height = resized(image.height);
  const auto margin = [&](int side) {
    return static_cast<int>(std::nearbyint(static_cast<double>(side - size) / 2));
  };
  resampler.resize(image, width, height, {margin(width), margin(height), size, size}, target);
}

}  // namespace ringlet::data
