// Pixels of four bytes: red, green, blue, and a fourth that means nothing. Decoding and resampling
// are fastest so, and nothing but a view of them is handed around.
#pragma once

#include <cstddef>
#include <cstdint>

namespace ringlet::data {

inline constexpr int kRgbxBytes = 4;

/// A part of a picture: `width` x `height` pixels, the upper left one at (left, top).
struct Box {
  int left = 0;
  int top = 0;
  int width = 0;
  int height = 0;
  bool operator==(const Box&) const = default;
};

/// A picture, or a part of one, in somebody else's memory.
struct RgbxView {
  const std::uint8_t* pixels = nullptr;
  int width = 0;
  int height = 0;
  std::ptrdiff_t row_bytes = 0;  ///< from one row to the next

  /// The part that lies in `box`, which is inside.
  RgbxView cropped(const Box& box) const {
    return {pixels + box.top * row_bytes + std::ptrdiff_t{box.left} * kRgbxBytes, box.width,
            box.height, row_bytes};
  }
};

}  // namespace ringlet::data
