#include <cstdlib>

#include "data/images/stb.h"

namespace {

// The most bytes of one allocation. stb inflates a PNG as far as memory goes, whatever its header
// says.
thread_local std::size_t largest_allocation = 0;

void* allocate(std::size_t bytes) {
  return bytes <= largest_allocation ? std::malloc(bytes) : nullptr;
}

void* reallocate(void* memory, std::size_t bytes) {
  return bytes <= largest_allocation ? std::realloc(memory, bytes) : nullptr;
}

}  // namespace

#define STBI_MALLOC allocate
#define STBI_REALLOC reallocate
#define STBI_FREE std::free
#define STBI_NO_STDIO
#define STBI_ONLY_PNG
#define STBI_ONLY_JPEG
#define STBI_ONLY_BMP
#define STB_IMAGE_STATIC
#define STB_IMAGE_IMPLEMENTATION
#include <stb_image.h>

namespace ringlet::data {

namespace {

constexpr std::size_t kForHeader = std::size_t{1} << 20;

const char* reason() {
  const char* text = stbi_failure_reason();
  return text == nullptr ? "no reason given" : text;
}

}  // namespace

StbHeader stb_header(std::span<const std::uint8_t> file) {
  largest_allocation = kForHeader;
  StbHeader header;
  const int good = stbi_info_from_memory(file.data(), static_cast<int>(file.size()), &header.width,
                                         &header.height, &header.channels);
  if (good == 0) header.failure = reason();
  return header;
}

const char* stb_decode(std::span<const std::uint8_t> file, std::size_t largest, Image& image) {
  largest_allocation = largest;
  int width = 0, height = 0, channels = 0;
  stbi_uc* pixels = stbi_load_from_memory(file.data(), static_cast<int>(file.size()), &width,
                                          &height, &channels, image.channels);
  if (pixels == nullptr) return reason();
  const bool as_announced = width == image.width && height == image.height;
  if (as_announced) {
    const auto bytes = static_cast<std::size_t>(width) * static_cast<std::size_t>(height) *
                       static_cast<std::size_t>(image.channels);
    image.pixels.assign(pixels, pixels + bytes);
  }
  stbi_image_free(pixels);
  return as_announced ? nullptr : "its size is not what its header says";
}

}  // namespace ringlet::data
