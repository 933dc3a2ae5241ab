// PGM and PPM with binary pixels (Netpbm's P5 and P6):
//
//   P5|P6  WIDTH HEIGHT MAXIMUM  one white space  the pixels, row by row
//
// with white space and comments (# to the line's end) between the words; above a maximum of 255 a
// sample has two bytes, the higher first. Samples are scaled so that MAXIMUM becomes 255.
#pragma once

#include <cstdint>
#include <span>

#include "data/images/image.h"

namespace ringlet::data {

struct PnmHeader {
  std::int64_t width = 0;
  std::int64_t height = 0;
  int channels = 0;
  int maximum = 0;
  std::size_t begin = 0;          ///< where the pixels begin
  const char* failure = nullptr;  ///< why it cannot be read, or null
};

/// `file` begins with P5 or P6.
PnmHeader pnm_header(std::span<const std::uint8_t> file);

/// What is wrong with the header, or with it in a file of so many bytes; null: nothing.
const char* pnm_defect(const PnmHeader& header, std::uint64_t file_bytes);

/// The pixels behind the header into `image`, whose extents are the header's. Returns why not, or
/// null.
const char* pnm_decode(std::span<const std::uint8_t> file, const PnmHeader& header, Image& image);

}  // namespace ringlet::data
