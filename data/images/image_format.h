// Detects a file's format by its first bytes, and whether its parts are as the format promises.
#pragma once

#include <cstdint>
#include <span>

namespace ringlet::data {

enum class ImageFormat : std::uint8_t { unknown, png, jpeg, webp, bmp, pnm };

const char* name_of(ImageFormat format);  ///< "PNG"

ImageFormat image_format(std::span<const std::uint8_t> file);

/// "a compressed BMP" (run lengths, JPEG or PNG), where stb_image does not read this kind; else
/// null.
const char* unread_bmp(std::span<const std::uint8_t> file);

/// A defect that stb_image would not notice, or null: a PNG, JPEG or BMP that breaks off, whose
/// missing pixels stb makes up; a Huffman table of more codes than it has room for; a PNG's chunk
/// whose CRC-32 is another one's.
const char* defect_of(ImageFormat format, std::span<const std::uint8_t> file);

/// What the time and the memory depend on that a JPEG takes. A scan may cost as much as the first
/// one and have a few bytes only.
struct JpegOutline {
  int scans = 0;
  bool progressive = false;
  /// "an arithmetic-coded JPEG", where stb_image does not read this kind, or makes other colours of
  /// it than were saved. Else null.
  const char* unread = nullptr;
  const char* defect = nullptr;  ///< as defect_of()
};
JpegOutline outline_of_jpeg(std::span<const std::uint8_t> file);

}  // namespace ringlet::data
