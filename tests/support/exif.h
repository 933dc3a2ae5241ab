// A JPEG with a note on how its camera was held.
#pragma once

#include <string>

#include "tests/data/idx_files.h"

namespace ringlet::testing {

/// `jpeg` with Exif data behind its first two bytes: the version of a camera, then `orientation`,
/// numbers with the high or the low byte first. The latter may have 4 bytes, of which some cameras
/// write it.
inline std::string with_orientation(const std::string& jpeg, int orientation, bool big_endian_bytes,
                                    std::size_t bytes_of_it = 2) {
  const auto number = [&](std::uint32_t value, std::size_t bytes) {
    const std::string text = big_endian(value).substr(4 - bytes);
    return big_endian_bytes ? text : std::string(text.rbegin(), text.rend());
  };
  const auto entry = [&](std::uint32_t tag, std::uint32_t value, std::size_t bytes) {
    return number(tag, 2) + number(bytes == 2 ? 3 : 4, 2) + number(1, 4) + number(value, bytes) +
           number(0, 4 - bytes);
  };
  const std::string tiff = std::string(big_endian_bytes ? "MM" : "II") + number(42, 2) +
                           number(8, 4) + number(2, 2) + entry(0x0100, 640, 2) +
                           entry(0x0112, static_cast<std::uint32_t>(orientation), bytes_of_it) +
                           number(0, 4);
  const std::string segment = std::string("Exif\0\0", 6) + tiff;
  return jpeg.substr(0, 2) + "\xff\xe1" +
         big_endian(static_cast<std::uint32_t>(segment.size() + 2)).substr(2) + segment +
         jpeg.substr(2);
}

}  // namespace ringlet::testing
