#include "app/report/image_uri.h"

// The one file that compiles stb's writer of images.
#define STBI_WRITE_NO_STDIO
#define STB_IMAGE_WRITE_IMPLEMENTATION
#include <stb_image_write.h>

#include <vector>

#include "app/report/test_results.h"
#include "base/error.h"

namespace ringlet::app::report {

namespace {

void append(void* png, void* bytes, int count) {
  static_cast<std::string*>(png)->append(static_cast<const char*>(bytes),
                                         static_cast<std::size_t>(count));
}

/// [C, H, W] as [H, W, C], with one channel or three.
std::vector<std::uint8_t> interleaved(const std::vector<std::uint8_t>& planes, std::size_t pixels,
                                      std::size_t channels) {
  std::vector<std::uint8_t> bytes(pixels * channels);
  for (std::size_t c = 0; c < channels; ++c) {
    for (std::size_t i = 0; i < pixels; ++i) bytes[i * channels + c] = planes[c * pixels + i];
  }
  return bytes;
}

}  // namespace

Html image_uri(const data::Dataset& images, std::int64_t index) {
  const auto width = static_cast<int>(images.width()), height = static_cast<int>(images.height());
  const int channels = images.channels() == 3 ? 3 : 1;
  return image_uri(
      interleaved(images.image(index), static_cast<std::size_t>(images.width() * images.height()),
                  static_cast<std::size_t>(channels)),
      width, height, channels);
}

Html image_uri(std::span<const std::uint8_t> pixels, int width, int height, int channels) {
  std::string png;
  const int written = stbi_write_png_to_func(append, &png, width, height, channels, pixels.data(),
                                             width * channels);
  require(written != 0, "image_uri", "the image could not be made a PNG");
  return data_uri("image/png", png);
}

}  // namespace ringlet::app::report
