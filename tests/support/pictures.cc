#include "tests/support/pictures.h"

#define STB_IMAGE_WRITE_IMPLEMENTATION
#define STB_IMAGE_WRITE_STATIC
#define STBI_WRITE_NO_STDIO
#include <stb_image_write.h>

namespace ringlet::testing {

namespace {

void append(void* text, void* data, int size) {
  static_cast<std::string*>(text)->append(static_cast<const char*>(data),
                                          static_cast<std::size_t>(size));
}

}  // namespace

std::string as_png(const data::Image& image) {
  std::string text;
  stbi_write_png_to_func(append, &text, image.width, image.height, image.channels,
                         image.pixels.data(), 0);
  return text;
}

std::string png_chunk(const std::string& kind, const std::string& content) {
  const auto big_endian = [](unsigned value) {
    std::string bytes;
    for (int shift = 24; shift >= 0; shift -= 8) bytes += static_cast<char>(value >> shift);
    return bytes;
  };
  std::string body = kind + content;
  const unsigned sum =
      stbiw__crc32(reinterpret_cast<unsigned char*>(body.data()), static_cast<int>(body.size()));
  return big_endian(static_cast<unsigned>(content.size())) + body + big_endian(sum);
}

std::string as_jpeg(const data::Image& image) {
  constexpr int kQuality = 95;
  std::string text;
  stbi_write_jpg_to_func(append, &text, image.width, image.height, image.channels,
                         image.pixels.data(), kQuality);
  return text;
}

std::string as_bmp(const data::Image& image) {
  std::string text;
  stbi_write_bmp_to_func(append, &text, image.width, image.height, image.channels,
                         image.pixels.data());
  return text;
}

}  // namespace ringlet::testing
