// Pictures for tests, encoded in memory.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "data/images/image.h"

namespace ringlet::testing {

/// Pixels of a formula that no transposition or mix-up of channels leaves alone.
inline data::Image gradient_image(int width, int height, int channels) {
  data::Image image{width, height, channels, {}};
  for (int y = 0; y < height; ++y) {
    for (int x = 0; x < width; ++x) {
      for (int c = 0; c < channels; ++c) {
        image.pixels.push_back(static_cast<std::uint8_t>((7 * x + 13 * y + 59 * c) % 256));
      }
    }
  }
  return image;
}

std::string as_png(const data::Image& image);
/// A part of a PNG, with its length and sum.
std::string png_chunk(const std::string& kind, const std::string& content);
std::string as_jpeg(const data::Image& image);
std::string as_bmp(const data::Image& image);

/// P5 for one channel, P6 for three.
inline std::string as_pnm(const data::Image& image) {
  return (image.channels == 1 ? "P5\n# a comment\n" : "P6\n") + std::to_string(image.width) + " " +
         std::to_string(image.height) + "\n255\n" +
         std::string(image.pixels.begin(), image.pixels.end());
}

inline std::span<const std::uint8_t> bytes_of(const std::string& text) {
  return {reinterpret_cast<const std::uint8_t*>(text.data()), text.size()};
}

}  // namespace ringlet::testing
