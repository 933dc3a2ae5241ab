// For stb_image_resize.h (Debian 12, Ubuntu 22.04 and 24.04).
#define STB_IMAGE_RESIZE_IMPLEMENTATION
#define STB_IMAGE_RESIZE_STATIC
#include <stb_image_resize.h>

#include <new>

#include "data/images/stb.h"

namespace ringlet::data {

Image stb_resize(const Image& image, int width, int height) {
  Image scaled{width, height, image.channels, {}};
  scaled.pixels.resize(static_cast<std::size_t>(width) * static_cast<std::size_t>(height) *
                       static_cast<std::size_t>(image.channels));
  const int good = stbir_resize_uint8(image.pixels.data(), image.width, image.height, 0,
                                      scaled.pixels.data(), width, height, 0, image.channels);
  if (good == 0) throw std::bad_alloc();
  return scaled;
}

}  // namespace ringlet::data
