// WebP pictures for tests, as libwebp wrote them: 4 x 3 pixels, grey, each column lighter by 40.
#pragma once

#include <string>

namespace ringlet::testing {

inline std::string lossless_webp() {
  return {
      "RIFF\x20\0\0\0WEBPVP8L\x14\0\0\0\x2f\x03\x80\0\0\x1f\x30\x28\x83\x32\x28\xf3\x1f\x78\x77"
      "\x28\x79\x44\xff\x03",
      40};
}

inline std::string lossy_webp() {
  return {
      "RIFF\x28\0\0\0WEBPVP8 \x1c\0\0\0\x70\x01\0\x9d\x01\x2a\x04\0\x03\0\x05\x40\x7c\x25\xa4\0"
      "\x02\x0f\xb8\0\0\xfe\xd2\x82\xd1\x80\0\0",
      48};
}

/// 1 x 1 pixel that is transparent.
inline std::string transparent_webp() {
  return {"RIFF\x1a\0\0\0WEBPVP8L\x0d\0\0\0\x2f\0\0\0\x10\x07\x10\x11\x11\x88\x88\xfe\x07\0", 34};
}

/// Flags that say so, and no frames.
inline std::string animated_webp() {
  return {"RIFF\x16\0\0\0WEBPVP8X\x0a\0\0\0\x02\0\0\0\x03\0\0\x02\0\0", 30};
}

}  // namespace ringlet::testing
