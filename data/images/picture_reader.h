// PictureReader: picture after picture in the memory of one thread, for training on thousands a
// second; image.h is for looking at one.
#pragma once

#include <cstdint>
#include <filesystem>
#include <span>
#include <string>
#include <vector>

#include "data/images/image.h"
#include "data/images/rgbx.h"
#include "data/images/stb.h"

namespace ringlet::data {

/// Pictures become RGB as in Pillow's convert("RGB"): grey is repeated, alpha is dropped. Nothing
/// is allocated once the largest picture was seen, but for files that are damaged or PGM or PPM,
/// and pictures beyond DecodeMemory's limit.
class PictureReader {
 public:
  /// The pixels of a file's content, good until the next call. `upright_by_exif`: a JPEG is turned
  /// as its Exif orientation says. Throws DataError as decode_image() does.
  RgbxView decode(std::span<const std::uint8_t> file, const std::string& name, bool upright_by_exif,
                  const ImageLimits& limits = {});
  /// The same for a regular file.
  RgbxView load(const std::filesystem::path& file, bool upright_by_exif,
                const ImageLimits& limits = {});

 private:
  std::vector<std::uint8_t> file_;    // its content
  std::vector<std::uint8_t> turned_;  // pixels that are not as the decoder left them
  DecodeMemory memory_;
  StbPixels pixels_;  // lies in memory_, or is the system's
};

}  // namespace ringlet::data
