// WebP, decoded by Debian's libwebp, which is opened when the first such picture comes: it need not
// be there to build Ringlet, nor to run it on other pictures.
//
//   RIFF  bytes behind here (4)  WEBP  then chunks of a name, a length and content:
//   VP8   lossy;  VP8L  lossless;  VP8X  flags first, and other chunks behind it
//
// Animations are refused. Source: RFC 9649.
#pragma once

#include <cstdint>
#include <span>

namespace ringlet::data {

/// Whether libwebp.so.7 is on this machine.
bool reads_webp();

struct WebpHeader {
  int width = 0;
  int height = 0;
  int channels = 0;               ///< 3, or 4 with alpha
  const char* failure = nullptr;  ///< why it cannot be read, or null
};

/// Of a file that begins as WebP does, or of its beginning. reads_webp() holds.
WebpHeader webp_header(std::span<const std::uint8_t> file);

/// Why a whole file cannot be read, as far as its first bytes say: it is cut off; null: it can.
const char* webp_defect(std::span<const std::uint8_t> file);

/// Whether it is an animation, by its first bytes.
bool is_animated_webp(std::span<const std::uint8_t> file);

/// Decodes to `pixels`, [height, width, channels] as the header says, or with `channels` 4. Returns
/// why not, or null.
const char* webp_decode(std::span<const std::uint8_t> file, const WebpHeader& header, int channels,
                        std::span<std::uint8_t> pixels);

}  // namespace ringlet::data
