// stb_image and stb_image_resize, each compiled in one file of its own (stb_*.cc). Here is all that
// the others see of them.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

#include "data/images/image.h"

namespace ringlet::data {

/// What a file's header says; `failure` is stb's reason, null where the header could be read.
struct StbHeader {
  int width = 0;
  int height = 0;
  int channels = 0;
  const char* failure = nullptr;
};
StbHeader stb_header(std::span<const std::uint8_t> file);

/// Decodes into `image`, whose extents are the header's. No allocation of the decoder's may exceed
/// `largest` bytes. Returns stb's reason for failing, or null.
const char* stb_decode(std::span<const std::uint8_t> file, std::size_t largest, Image& image);

/// Scales to `width` x `height` with a filter as wide as the reduction.
Image stb_resize(const Image& image, int width, int height);

}  // namespace ringlet::data
