// How much memory it takes to decode a picture, at most, by what the file's header says:
//
//   JPEG   a byte for each pixel and component, three where it is progressive; four for the result
//   PNG    the unpacked pixels as the file has them; four samples a pixel for the result, of one
//          byte or of two; half of these again where it is interlaced, or all of them where the
//          result has another layout
//   WebP   four bytes a pixel for the result, four for lossless pixels, two for alpha (libwebp)
//   BMP    four bytes a pixel
//   PNM    the samples, and four bytes a pixel
//
// and the file itself.
#pragma once

#include <cstdint>
#include <span>

#include "data/images/image_format.h"

namespace ringlet::data {

std::uint64_t decode_bytes(ImageFormat format, std::span<const std::uint8_t> file,
                           std::uint64_t pixels, int channels);

}  // namespace ringlet::data
