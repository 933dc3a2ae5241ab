// Pictures: PNG, JPEG, WebP where libwebp is here, BMP, PGM and PPM, with limits small enough that
// none takes long.
#include <zlib.h>

#include "base/data_error.h"
#include "data/images/image.h"
#include "data/images/image_format.h"
#include "data/images/picture_reader.h"
#include "tests/data/idx_files.h"
#include "tests/fuzz/fuzz.h"
#include "tests/support/exif.h"
#include "tests/support/webp.h"

namespace ringlet::fuzz {

namespace {

std::string png_chunk(const std::string& kind, const std::string& content) {
  const std::string body = kind + content;
  const auto crc =
      crc32(0, reinterpret_cast<const Bytef*>(body.data()), static_cast<uInt>(body.size()));
  return testing::big_endian(static_cast<std::uint32_t>(content.size())) + body +
         testing::big_endian(static_cast<std::uint32_t>(crc));
}

/// 3 x 2 pixels; `color` as PNG counts: 0 grey, 2 RGB, 6 RGB and alpha.
std::string png(char color, char channels, char interlaced) {
  std::string rows;
  for (int y = 0; y < 2; ++y) {
    rows += static_cast<char>(y);  // the row's filter
    for (int i = 0; i < 3 * channels; ++i) rows += static_cast<char>(40 * i);
  }
  std::string packed(compressBound(static_cast<uLong>(rows.size())), '\0');
  auto size = static_cast<uLongf>(packed.size());
  compress(reinterpret_cast<Bytef*>(packed.data()), &size,
           reinterpret_cast<const Bytef*>(rows.data()), static_cast<uLong>(rows.size()));
  packed.resize(size);
  const std::string header =
      testing::big_endian(3) + testing::big_endian(2) + std::string{8, color, 0, 0, interlaced};
  return "\x89PNG\r\n\x1a\n" + png_chunk("IHDR", header) + png_chunk("IDAT", packed) +
         png_chunk("IEND", "");
}

std::string little(std::uint32_t value) {
  std::string bytes = testing::big_endian(value);
  return {bytes.rbegin(), bytes.rend()};
}

/// 2 x 2 pixels of 24 bits.
std::string bmp() {
  const std::string pixels(16, '\x7f');
  return "BM" + little(54 + 16) + little(0) + little(54) + little(40) + little(2) + little(2) +
         std::string{1, 0, 24, 0} + little(0) + little(16) + little(2835) + little(2835) +
         little(0) + little(0) + pixels;
}

/// 8 x 8 grey pixels, all of the same brightness: baseline, one table of each kind.
std::string jpeg() {
  const std::string quantisation = std::string("\xff\xdb\x00\x43\x00", 5) + std::string(64, '\1');
  const std::string frame("\xff\xc0\x00\x0b\x08\x00\x08\x00\x08\x01\x01\x11\x00", 13);
  const auto huffman = [](char kind) {  // one code of one bit: the symbol 0
    return std::string("\xff\xc4\x00\x14", 4) + kind + '\1' + std::string(15, '\0') + '\0';
  };
  const std::string scan("\xff\xda\x00\x08\x01\x01\x00\x00\x3f\x00\x3f", 11);
  return "\xff\xd8" + quantisation + frame + huffman('\0') + huffman('\x10') + scan + "\xff\xd9";
}

/// A PNG's sums made right, as no change of a random byte would leave them; else all would end
/// there.
std::string with_sums(std::string file) {
  constexpr std::size_t kBefore = 8;  // of a chunk, its length and type; and of the file
  const auto* bytes = reinterpret_cast<const std::uint8_t*>(file.data());
  if (data::image_format({bytes, file.size()}) != data::ImageFormat::png) return file;
  for (std::size_t at = kBefore; at + kBefore + 4 <= file.size();) {
    std::size_t length = 0;
    for (std::size_t i = 0; i < 4; ++i) length = length << 8 | bytes[at + i];
    if (length > file.size() - at - kBefore - 4) break;
    const auto sum = static_cast<std::uint32_t>(crc32_z(0, bytes + at + 4, length + 4));
    testing::big_endian(sum).copy(&file[at + kBefore + length], 4);
    at += kBefore + length + 4;
  }
  return file;
}

}  // namespace

std::vector<std::string> seeds() {
  return {png(0, 1, 0),
          png(2, 3, 0),
          png(6, 4, 1),
          bmp(),
          testing::lossless_webp(),
          testing::lossy_webp(),
          testing::transparent_webp(),
          testing::animated_webp(),
          jpeg(),
          testing::with_orientation(jpeg(), 6, true),
          testing::with_orientation(jpeg(), 8, false),
          "P5 3 2 255\nabcdef",
          "P6\n# a comment\n2 1\n255\nabcdef",
          "P5 1 1 65535\nab"};
}

}  // namespace ringlet::fuzz

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  using namespace ringlet;
  const data::ImageLimits limits{.side = 512, .pixels = 1 << 16};
  const std::string file = fuzz::with_sums({reinterpret_cast<const char*>(data), size});
  const std::span<const std::uint8_t> bytes(reinterpret_cast<const std::uint8_t*>(file.data()),
                                            file.size());
  fuzz::reads<DataError>([&] {
    const data::Image image = data::decode_image(bytes, "fuzz", limits);
    fuzz::promise(image.width >= 1 && image.width <= limits.side && image.height >= 1 &&
                      image.height <= limits.side && image.channels >= 1 && image.channels <= 4,
                  "extents are within the limits");
    fuzz::promise(image.pixels.size() == static_cast<std::size_t>(image.width) *
                                             static_cast<std::size_t>(image.height) *
                                             static_cast<std::size_t>(image.channels),
                  "there are as many pixels as the extents say");
  });
  fuzz::reads<DataError>([&] {
    static data::PictureReader reader;
    const data::RgbxView view = reader.decode(bytes, "fuzz", true, limits);
    fuzz::promise(view.width >= 1 && view.width <= limits.side && view.height >= 1 &&
                      view.height <= limits.side && view.row_bytes == 4 * view.width,
                  "extents for training are within the limits");
    unsigned sum = 0;
    for (int i = 0; i < 4 * view.width * view.height; ++i) sum += view.pixels[i];
    fuzz::promise(sum <= 255U * 4U * 512U * 512U, "all pixels can be read");
  });
  return 0;
}
