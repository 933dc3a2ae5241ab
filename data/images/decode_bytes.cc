#include "data/images/decode_bytes.h"

#include <algorithm>

namespace ringlet::data {

namespace {

constexpr std::uint64_t kResult = 4;  // bytes a pixel: red, green, blue and alpha
constexpr std::uint64_t kOfWebp = 6;  // of libwebp's own, beside the result

/// Bytes a pixel of a PNG. Its first chunk's content begins at byte 16: width and height, then a
/// byte each for the depth, the type of colour, three more of which the last says interlaced.
std::uint64_t png_bytes(std::span<const std::uint8_t> file) {
  constexpr std::size_t kDepth = 24, kColour = 25, kInterlaced = 28;
  constexpr int kMostSamples = 4;
  if (file.size() <= kInterlaced) return kResult;
  const bool wide = file[kDepth] == 16, interlaced = file[kInterlaced] != 0;
  constexpr int kSamples[] = {1, 1, 3, 1, 2, 4, 4};  // by the type of colour
  const int samples = kSamples[std::min<std::size_t>(file[kColour], std::size(kSamples) - 1)];
  const std::uint64_t sample = wide ? 2 : 1, result = kResult * sample;
  const std::uint64_t unpacked = static_cast<std::uint64_t>(samples) * sample;
  const std::uint64_t decoding = unpacked + result + (interlaced ? result / 2 : 0);
  const std::uint64_t converting = samples == kMostSamples ? result + kResult : 2 * result;
  return std::max(decoding, converting);
}

}  // namespace

std::uint64_t decode_bytes(ImageFormat format, std::span<const std::uint8_t> file,
                           std::uint64_t pixels, int channels) {
  const auto components = static_cast<std::uint64_t>(channels);
  std::uint64_t of_pixel = kResult;
  if (format == ImageFormat::jpeg) {
    of_pixel += components * (outline_of_jpeg(file).progressive ? 3 : 1);
  } else if (format == ImageFormat::png) {
    of_pixel = png_bytes(file);
  } else if (format == ImageFormat::webp) {
    of_pixel += kOfWebp;
  } else if (format == ImageFormat::pnm) {
    of_pixel += components;
  }
  return file.size() + pixels * of_pixel;
}

}  // namespace ringlet::data
