#include "data/border.h"

#include <algorithm>

namespace ringlet::data {

namespace {

constexpr std::int64_t kEnoughSamples = 1000;

struct Sum {
  std::int64_t value = 0;
  std::int64_t pixels = 0;
  void add(std::uint8_t pixel) {
    value += pixel;
    ++pixels;
  }
};

void add_border(std::span<const std::uint8_t> plane, std::int64_t height, std::int64_t width,
                Sum& sum) {
  const auto at = [&](std::int64_t y, std::int64_t x) {
    return plane[static_cast<std::size_t>(y * width + x)];
  };
  for (std::int64_t x = 0; x < width; ++x) {
    sum.add(at(0, x));
    if (height > 1) sum.add(at(height - 1, x));
  }
  for (std::int64_t y = 1; y + 1 < height; ++y) {
    sum.add(at(y, 0));
    if (width > 1) sum.add(at(y, width - 1));
  }
}

}  // namespace

double border_brightness(std::span<const std::uint8_t> image, std::int64_t channels,
                         std::int64_t height, std::int64_t width) {
  Sum sum;
  const auto plane = static_cast<std::size_t>(height * width);
  for (std::size_t c = 0; c < static_cast<std::size_t>(channels); ++c) {
    add_border(image.subspan(c * plane, plane), height, width, sum);
  }
  return static_cast<double>(sum.value) / static_cast<double>(sum.pixels) / 255;
}

double border_brightness(const Dataset& dataset) {
  const std::int64_t samples = std::min(dataset.size(), kEnoughSamples);
  double sum = 0;
  for (std::int64_t i = 0; i < samples; ++i) {
    sum +=
        border_brightness(dataset.image(i), dataset.channels(), dataset.height(), dataset.width());
  }
  return sum / static_cast<double>(samples);
}

}  // namespace ringlet::data
