// What pictures are compared by, without their names:
//
//   equal          the same bytes, or the same pixels when decoded and turned upright
//   nearly equal   the same picture saved again: smaller, larger, in another format, compressed
//
// For the latter a picture is resized to 9 x 8 pixels. Two are nearly equal where
//
//   - their sketches differ in at most kMostBits of 64 bits: each says whether a pixel is lighter
//     than the next one of its row by more than kStep levels;
//   - their red, green and blue differ by at most kMostLevels of 255 on average, and nowhere by
//     more than kMostAnywhere.
//
// What was cut, turned, mirrored or made much lighter is another picture.
#pragma once

#include <array>
#include <cstdint>
#include <filesystem>
#include <span>
#include <string>
#include <vector>

#include "base/stop_request.h"
#include "data/images/image_format.h"

namespace ringlet::data {

inline constexpr int kMostBits = 4;
inline constexpr int kMostLevels = 6, kMostAnywhere = 16;
inline constexpr int kStep = 2;

struct PicturePrint {
  static constexpr int kWidth = 9, kHeight = 8;

  std::string defect{};  ///< why it cannot be decoded; empty: it was
  ImageFormat format = ImageFormat::unknown;
  int width = 0, height = 0;  ///< upright
  std::uint64_t file = 0;     ///< hash of its bytes
  std::uint64_t pixels = 0;   ///< hash of its pixels
  std::uint64_t sketch = 0;
  std::array<std::uint8_t, std::size_t{3} * kWidth * kHeight> small{};  ///< [3, height, width]
};

/// Decodes all, on as many threads as there are processors. One that cannot be decoded says why,
/// and has the hash of its bytes alone. Throws Stopped.
std::vector<PicturePrint> print_pictures(std::span<const std::filesystem::path> files,
                                         const StopRequest& stop = {});

/// Of one file.
PicturePrint print_picture(const std::filesystem::path& file);

/// Numbers that are the same for pictures of one group: the smallest index in it. Groups are the
/// finest in which pictures that are equal, or where `nearly` nearly equal, are together. What
/// cannot be decoded is compared by its bytes.
std::vector<std::size_t> alike(std::span<const PicturePrint> prints, bool nearly);

}  // namespace ringlet::data
