// How a camera was held: the orientation that Exif notes in a JPEG, instead of turning its pixels.
//
//   1  upright            5  transposed
//   2  mirrored           6  to be turned by 90 degrees clockwise
//   3  upside down        7  transposed along the other diagonal
//   4  mirrored, 3        8  to be turned by 90 degrees counter-clockwise
//
// Source: Exif 2.32 (CIPA DC-008), 4.6.4, tag 0112; the structure around it is TIFF's.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "data/images/image.h"
#include "data/images/rgbx.h"

namespace ringlet::data {

/// 1 to 8; 1 where the JPEG says nothing, or nothing that makes sense. Safe for any bytes.
int exif_orientation(std::span<const std::uint8_t> jpeg);

/// The picture as it was seen: `image` has the rows and columns of `orientation`, 1 to 8.
Image upright(const Image& image, int orientation);
/// The same, into `pixels`, whose memory is used again.
RgbxView upright(const RgbxView& image, int orientation, std::vector<std::uint8_t>& pixels);

}  // namespace ringlet::data
