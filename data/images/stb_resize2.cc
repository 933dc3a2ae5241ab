// For stb_image_resize2.h, which replaced stb_image_resize.h (Debian 13).
#define STB_IMAGE_RESIZE_IMPLEMENTATION
#define STB_IMAGE_RESIZE_STATIC
#include <stb_image_resize2.h>

#include <new>

#include "data/images/stb.h"

namespace ringlet::data {

Image stb_resize(const Image& image, int width, int height) {
  Image scaled{width, height, image.channels, {}};
  scaled.pixels.resize(static_cast<std::size_t>(width) * static_cast<std::size_t>(height) *
                       static_cast<std::size_t>(image.channels));
  const auto* done = stbir_resize_uint8_linear(image.pixels.data(), image.width, image.height, 0,
                                               scaled.pixels.data(), width, height, 0,
                                               static_cast<stbir_pixel_layout>(image.channels));
  if (done == nullptr) throw std::bad_alloc();
  return scaled;
}

}  // namespace ringlet::data
