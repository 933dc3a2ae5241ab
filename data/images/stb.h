// stb_image and stb_image_resize, each compiled in one file of its own (stb_*.cc). Here is all that
// the others see of them.
//
// stb turns a JPEG's colours into RGB with vector instructions only where a pixel has four bytes.
// So it is always asked for four, and the fourth is dropped: up to twice as fast.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <utility>

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

/// What the functions below return where the system has no memory left.
extern const char* const kNoMemory;

/// Decodes into `image`, whose extents are the header's. Its channels become the file's: those of
/// the header, and alpha where a colour is transparent. No allocation of the decoder's may exceed
/// `largest` bytes. Returns stb's reason for failing, or null.
const char* stb_decode(std::span<const std::uint8_t> file, std::size_t largest, Image& image);

/// Memory that a thread decodes with, picture after picture. It grows to what the largest needed,
/// up to 64 MiB; beyond that the decoder asks the system.
class DecodeMemory {
 public:
  DecodeMemory() = default;
  DecodeMemory(const DecodeMemory&) = delete;
  DecodeMemory& operator=(const DecodeMemory&) = delete;

  /// Takes back everything, and grows by what was missing.
  void begin();
  /// Null where there is no room; then as much is missing.
  void* take(std::size_t bytes);
  bool owns(const void* memory) const;

 private:
  std::unique_ptr<std::uint8_t[]> bytes_;
  std::size_t size_ = 0, used_ = 0, missing_ = 0;
};

/// Pixels of four bytes as stb allocated them.
class StbPixels {
 public:
  StbPixels() = default;
  /// `is_own`: they are the system's memory, to be given back.
  StbPixels(std::uint8_t* pixels, bool is_own) : pixels_(pixels), is_own_(is_own) {}
  ~StbPixels();
  StbPixels(StbPixels&& other) noexcept { *this = std::move(other); }
  StbPixels& operator=(StbPixels&& other) noexcept {
    std::swap(pixels_, other.pixels_);
    std::swap(is_own_, other.is_own_);
    return *this;
  }
  const std::uint8_t* get() const { return pixels_; }

 private:
  std::uint8_t* pixels_ = nullptr;
  bool is_own_ = false;
};

/// Decodes to red, green, blue and alpha, [height, width, 4] as the header says. `memory` may be
/// null; else the pixels are there, and good until its begin(). Otherwise as stb_decode().
const char* stb_decode_rgbx(std::span<const std::uint8_t> file, const StbHeader& header,
                            std::size_t largest, DecodeMemory* memory, StbPixels& pixels);

/// Scales to `width` x `height` with a filter as wide as the reduction.
Image stb_resize(const Image& image, int width, int height);

}  // namespace ringlet::data
