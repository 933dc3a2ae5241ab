// What a file is by its first bytes, and whether its parts are as its format promises.
#pragma once

#include <cstdint>
#include <span>

namespace ringlet::data {

enum class ImageFormat : std::uint8_t { unknown, png, jpeg, bmp, pnm };

const char* name_of(ImageFormat format);  ///< "PNG"

ImageFormat image_format(std::span<const std::uint8_t> file);

/// What stb_image would not see, or null: a PNG, JPEG or BMP that breaks off, whose missing pixels
/// it makes up, and a Huffman table of more codes than it has room for.
const char* defect_of(ImageFormat format, std::span<const std::uint8_t> file);

}  // namespace ringlet::data
