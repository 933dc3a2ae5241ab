// Pictures: what is decoded is what was encoded, and nothing that is broken gets past a message.
#include "data/images/image.h"

#include <gtest/gtest.h>
#include <sys/stat.h>
#include <zlib.h>

#include <cstdlib>
#include <random>

#include "base/data_error.h"
#include "data/images/picture_reader.h"
#include "tests/data/idx_files.h"
#include "tests/support/files.h"
#include "tests/support/pictures.h"

namespace ringlet::data {
namespace {

using testing::as_bmp;
using testing::as_jpeg;
using testing::as_png;
using testing::as_pnm;
using testing::gradient_image;
using testing::png_chunk;
using testing::says;

Image decode(const std::string& file, const ImageLimits& limits = {}) {
  return decode_image(testing::bytes_of(file), "it.png", limits);
}

std::string image_message_of(const std::string& file, const ImageLimits& limits = {}) {
  return testing::message_of<DataError>([&] { decode(file, limits); });
}

void expect_same(const Image& image, const Image& expected) {
  EXPECT_EQ(image.width, expected.width);
  EXPECT_EQ(image.height, expected.height);
  EXPECT_EQ(image.channels, expected.channels);
  EXPECT_TRUE(image.pixels == expected.pixels);
}

TEST(Image, OfALosslessFormatComesBackBitForBit) {
  for (const int channels : {1, 2, 3, 4}) {
    const Image image = gradient_image(13, 7, channels);
    expect_same(decode(as_png(image)), image);
  }
  expect_same(decode(as_bmp(gradient_image(13, 7, 3))), gradient_image(13, 7, 3));
  expect_same(decode(as_pnm(gradient_image(13, 7, 3))), gradient_image(13, 7, 3));
  expect_same(decode(as_pnm(gradient_image(13, 7, 1))), gradient_image(13, 7, 1));
  expect_same(decode(as_png(gradient_image(1, 1, 1))), gradient_image(1, 1, 1));
}

/// The same pixels, the uppermost row first: its height is below 0.
std::string top_down(const std::string& bmp, int width, int height, int channels) {
  constexpr std::size_t kPixels = 10, kHeight = 22;
  const auto row = static_cast<std::size_t>((width * channels + 3) / 4 * 4);
  const auto begin = static_cast<std::size_t>(static_cast<std::uint8_t>(bmp[kPixels]));
  std::string file = bmp;
  for (std::size_t y = 0, rows = static_cast<std::size_t>(height); y < rows; ++y) {
    file.replace(begin + y * row, row, bmp, begin + (rows - 1 - y) * row, row);
  }
  file.replace(kHeight, 4, {static_cast<char>(-height), '\xff', '\xff', '\xff'});
  return file;
}

TEST(Image, OfABmpIsTheSameWhicheverRowIsFirst) {
  for (const int channels : {3, 4}) {
    const Image image = gradient_image(13, 7, channels);
    const std::string file = as_bmp(image), turned = top_down(file, 13, 7, channels);
    expect_same(decode(turned), decode(file));
    EXPECT_EQ(decode(turned).pixels[0], image.pixels[0]);
    PictureReader reader;
    EXPECT_EQ(reader.decode(testing::bytes_of(turned), "it", true).height, 7);
    std::string none = file;
    none.replace(22, 4, std::string("\0\0\0\x80", 4));
    EXPECT_TRUE(says(image_message_of(none), {"it.png"}));
  }
}

TEST(Image, OfACompressedBmpIsToldOf) {
  std::string file = as_bmp(gradient_image(13, 7, 3));
  for (const char how : {1, 2, 4, 5}) {
    file[30] = how;
    EXPECT_EQ(image_message_of(file),
              "it.png: is a compressed BMP, which is not read; save it as PNG");
  }
  file[14] = 52;
  EXPECT_EQ(image_message_of(file),
            "it.png: is a BMP with a rare header, which is not read; save it as PNG");
}

TEST(Image, OfAJpegThatStbReadsOtherwiseIsToldOf) {
  const std::string file = as_jpeg(gradient_image(13, 7, 3));
  const std::size_t frame = file.find("\xff\xc0");
  ASSERT_NE(frame, std::string::npos);
  const auto with = [&](std::size_t at, int byte) {
    std::string other = file;
    other[frame + at] = static_cast<char>(byte);
    return other;
  };
  const auto told = [](const std::string& kind) {
    return "it.png: is " + kind + ", which is not read; save it as PNG";
  };
  EXPECT_EQ(image_message_of(with(1, 0xC9)), told("an arithmetic-coded JPEG"));
  EXPECT_EQ(image_message_of(with(1, 0xCE)), told("an arithmetic-coded JPEG"));
  EXPECT_EQ(image_message_of(with(1, 0xC3)), told("a lossless or hierarchical JPEG"));
  EXPECT_EQ(image_message_of(with(4, 12)), told("a JPEG of more than 8 bits a sample"));
  const std::string four = with(9, 4);  // colours
  const std::string untold = told("a JPEG of four colours, of which Adobe's marker says nothing");
  EXPECT_EQ(image_message_of(four), untold);
  for (const char transform : {0, 1, 2}) {  // CMYK, none of four colours, YCCK
    std::string marked = four;
    marked.insert(2, std::string("\xff\xee\0\x0e"
                                 "Adobe\0\x64\0\0\0\0",
                                 15) +
                         transform);
    EXPECT_EQ(image_message_of(marked) == untold, transform == 1);
  }
}

TEST(Image, OfAJpegComesBackNearly) {
  Image image{40, 24, 3, {}};
  for (int i = 0; i < 40 * 24; ++i) {
    for (const int level : {i % 40 * 5, i / 40 * 8, 90}) {
      image.pixels.push_back(static_cast<std::uint8_t>(level));
    }
  }
  const Image decoded = decode(as_jpeg(image));
  ASSERT_EQ(decoded.pixels.size(), image.pixels.size());
  for (std::size_t i = 0; i < image.pixels.size(); ++i) {
    ASSERT_NEAR(decoded.pixels[i], image.pixels[i], 12) << i;
  }
}

TEST(Image, OfAJpegWhoseColoursAreHalfAsWideHasThemUpToItsEdge) {
  // 18 x 8 pixels, 4:2:2: all of one brightness, red (Cr 192) up to the 16th, then green (Cr 64).
  const std::string file =
      "\xff\xd8" + std::string("\xff\xdb\0\x43\0", 5) + std::string(64, '\x10') +
      std::string("\xff\xc0\0\x11\x08\0\x08\0\x12\3\1\x21\0\2\x11\0\3\x11\0", 19) +
      std::string("\xff\xc4\0\x16\0\1\1\1", 8) + std::string(13, '\0') +
      std::string("\0\6\7\xff\xc4\0\x14\x10\1", 9) + std::string(16, '\0') +
      std::string("\xff\xda\0\x0c\3\1\0\2\0\3\0\0\x3f\0", 14) + "\x02\x80\x06\x7e" + "\xff\xd9";
  const Image image = decode(file);
  ASSERT_EQ(image.width, 18);
  const auto red = [&](int x) { return image.pixels[static_cast<std::size_t>(3 * x)]; };
  EXPECT_NEAR(red(14), 218, 1);
  EXPECT_NEAR(red(15), 173, 1);  // three quarters of the one, a quarter of the other
  EXPECT_NEAR(red(16), 83, 1);
  EXPECT_NEAR(red(17), 38, 1);
}

TEST(Image, OfSixteenBitsIsRoundedToEight) {
  const std::string pgm = std::string("P5 2 1 65535\n") + std::string("\x12\x34\xfe\xdc", 4);
  EXPECT_EQ(decode(pgm).pixels, (std::vector<std::uint8_t>{0x12, 0xfe}));
}

TEST(Image, OfAnotherMaximumIsScaledToIt) {
  EXPECT_EQ(decode(std::string("P5 3 1 15\n") + std::string("\x00\x05\x0f", 3)).pixels,
            (std::vector<std::uint8_t>{0, 85, 255}));
  EXPECT_TRUE(says(image_message_of("P5 1 1 15\n\x10"), {"it.png", "maximum"}));
  for (const char* header : {"P5 1 1 0\nx", "P5 0 1 255\nx", "P5 1 1 65536\nxx", "P6 a 1 255\nxxx",
                             "P5 99999999999999999999 1 255\n"}) {
    EXPECT_TRUE(says(image_message_of(header), {"it.png", "PGM"})) << header;
  }
  EXPECT_TRUE(
      says(image_message_of("P5 1000000000 1000000000 255\n"), {"1000000000 x", "smaller"}));
}

TEST(Image, ThatIsNoneIsNamed) {
  EXPECT_TRUE(says(image_message_of(""), {"it.png", "empty"}));
  for (const char* foreign :
       {"GIF89a", "RIFF....WAVE", "{}", "P2\n2 2 255 0 0 0 0", "\xff\xd8", "B"}) {
    EXPECT_TRUE(says(image_message_of(foreign), {"it.png", "no image", "PNG", "JPEG"})) << foreign;
  }
}

TEST(Image, ThatBreaksOffIsRefusedWhereverThatIs) {
  const Image image = gradient_image(17, 9, 3);
  for (const std::string& whole : {as_png(image), as_jpeg(image), as_bmp(image), as_pnm(image)}) {
    decode(whole);
    for (std::size_t size = 8; size + 1 < whole.size(); size += size < 700 ? 1 : 13) {
      ASSERT_TRUE(says(image_message_of(whole.substr(0, size)), {"it.png", "again"}))
          << whole.substr(0, 2) << " of " << size << " bytes";
    }
  }
}

TEST(Image, WhoseHuffmanTableIsTooLongIsRefused) {
  std::string file = as_jpeg(gradient_image(16, 16, 1));
  const auto table = file.find("\xff\xc4");
  ASSERT_NE(table, std::string::npos);
  file[table + 5] = '\xff';  // codes of one bit
  file[table + 6] = '\x02';
  EXPECT_TRUE(says(image_message_of(file), {"it.png", "Huffman"}));
}

TEST(Image, WhoseScanNamesAHuffmanTableThatIsNotThereIsRefused) {
  std::string file = as_jpeg(gradient_image(16, 16, 1));
  const auto scan = file.find("\xff\xda");
  ASSERT_NE(scan, std::string::npos);
  for (const char tables : {'\x02', '\x20', '\x3f'}) {
    file[scan + 6] = tables;
    EXPECT_TRUE(says(image_message_of(file), {"it.png", "no Huffman table"})) << int{tables};
  }
}

TEST(Image, WhoseJpegHasAThumbnailIsNotTakenForWholeByItsEnd) {
  const std::string whole = as_jpeg(gradient_image(64, 64, 3));
  const std::string thumbnail = as_jpeg(gradient_image(8, 8, 3));
  const auto length = static_cast<std::uint32_t>(thumbnail.size() + 2);
  const std::string segment = std::string("\xff\xe1") + testing::big_endian(length).substr(2);
  const std::string with = whole.substr(0, 2) + segment + thumbnail + whole.substr(2);
  EXPECT_EQ(decode(with).width, 64);
  EXPECT_TRUE(says(image_message_of(with.substr(0, with.size() - 200)), {"JPEG", "cut off"}));
}

/// A PNG of `width` x `height` grey pixels whose pixels unpack to `bytes` zeros.
std::string png_of(std::uint32_t width, std::uint32_t height, std::size_t bytes) {
  const std::string zeros(bytes, '\0');
  std::string packed(compressBound(bytes), '\0');
  uLongf size = packed.size();
  compress(reinterpret_cast<Bytef*>(packed.data()), &size,
           reinterpret_cast<const Bytef*>(zeros.data()), bytes);
  packed.resize(size);
  const std::string header =
      testing::big_endian(width) + testing::big_endian(height) + std::string("\x08\0\0\0\0", 5);
  return "\x89PNG\r\n\x1a\n" + png_chunk("IHDR", header) + png_chunk("IDAT", packed) +
         png_chunk("IEND", "");
}

TEST(Image, WhosePartsHaveOddNamesIsToldOfInOneLine) {
  std::string file = png_of(3, 2, 8);
  file.insert(file.find("IDAT") - 4, png_chunk("P\n5\x1b", ""));
  const std::string message = image_message_of(file);
  EXPECT_TRUE(says(message, {"PNG", "P?5?"}));
  EXPECT_EQ(message.find('\x1b'), std::string::npos);
}

TEST(Image, WhosePartsHaveAWrongSumIsRefusedWherePixelsDependOnThem) {
  const std::string whole = as_png(gradient_image(13, 7, 3));
  std::string file = whole;
  file[whole.size() / 2] ^= 1;
  EXPECT_TRUE(says(image_message_of(file), {"it.png", "PNG", "damaged", "sum"}));
  std::string text = png_chunk("tEXt", "by me");
  text.back() ^= 1;
  file = whole;
  file.insert(file.find("IDAT") - 4, text);
  expect_same(decode(file), decode(whole));
}

TEST(Image, OfManyPixelsIsRefusedByItsHeader) {
  EXPECT_EQ(decode(png_of(3, 2, 8)).pixels, std::vector<std::uint8_t>(6));
  EXPECT_TRUE(says(image_message_of(png_of(60000, 60000, 8)), {"it.png", "too large"}));
  EXPECT_TRUE(says(image_message_of(png_of(21000, 100, 8)), {"21000 x 100", "20000", "smaller"}));
  EXPECT_TRUE(says(image_message_of(png_of(19000, 19000, 8)), {"19000 x 19000", "250000000"}));
  EXPECT_TRUE(says(image_message_of(png_of(30, 30, 930), {.side = 29}), {"30 x 30", "29 a side"}));
  EXPECT_TRUE(says(image_message_of(png_of(0, 3, 8)), {"it.png"}));
}

TEST(Image, ThatUnpacksToMoreThanItsHeaderSaysIsStopped) {
  const std::string bomb = png_of(3, 2, std::size_t{64} << 20);
  EXPECT_LT(bomb.size(), std::size_t{100} << 10);
  EXPECT_TRUE(says(image_message_of(bomb), {"PNG", "damaged"}));
}

TEST(Image, OfManyBytesIsRefusedBeforeItIsRead) {
  const testing::TemporaryDirectory folder;
  const std::string file = as_png(gradient_image(9, 9, 1));
  testing::write_file(folder / "a.png", file);
  EXPECT_EQ(load_image(folder / "a.png", {.file_bytes = file.size()}).width, 9);
  EXPECT_TRUE(says(testing::message_of<DataError>(
                       [&] { load_image(folder / "a.png", {.file_bytes = file.size() - 1}); }),
                   {"a.png", std::to_string(file.size()), "smaller"}));
}

TEST(Image, ThatCannotBeReadIsNamed) {
  const testing::TemporaryDirectory folder;
  const auto message = [&](const std::string& name) {
    return testing::message_of<DataError>([&] { load_image(folder / name); });
  };
  EXPECT_TRUE(says(message("none.png"), {"none.png", "no such file"}));
  EXPECT_TRUE(says(message("."), {"not a regular file"}));
  ASSERT_EQ(::mkfifo((folder / "pipe.png").c_str(), 0600), 0);
  EXPECT_TRUE(says(message("pipe.png"), {"pipe.png", "not a regular file"}));  // and does not wait
}

TEST(Image, OfDamagedBytesIsAnImageOrAMessage) {
  std::mt19937 draw(3);
  const Image image = gradient_image(19, 11, 3);
  for (const std::string& whole : {as_png(image), as_jpeg(image), as_bmp(image), as_pnm(image)}) {
    for (int trial = 0; trial < 300; ++trial) {
      std::string file = whole;
      for (int change = 0; change < 4; ++change) {
        file[draw() % std::min<std::size_t>(file.size(), 200)] = static_cast<char>(draw());
      }
      try {
        const Image decoded = decode(file);
        ASSERT_EQ(decoded.pixels.size(), std::size_t(decoded.width) * std::size_t(decoded.height) *
                                             std::size_t(decoded.channels));
      } catch (const DataError& error) {
        ASSERT_TRUE(says(error.what(), {"it.png"}));
      }
    }
  }
}

/// 2 x 1 pixels of `bits` a channel; `colour` as PNG counts: 0 grey, 2 RGB. `before`: chunks
/// before the pixels.
std::string png_of_two(char bits, char colour, const std::string& samples,
                       const std::string& before = "") {
  const std::string row = std::string(1, '\0') + samples;  // without a filter
  std::string packed(compressBound(static_cast<uLong>(row.size())), '\0');
  auto size = static_cast<uLongf>(packed.size());
  compress(reinterpret_cast<Bytef*>(packed.data()), &size,
           reinterpret_cast<const Bytef*>(row.data()), static_cast<uLong>(row.size()));
  packed.resize(size);
  const std::string header =
      testing::big_endian(2) + testing::big_endian(1) + std::string{bits, colour, 0, 0, 0};
  return "\x89PNG\r\n\x1a\n" + png_chunk("IHDR", header) + before + png_chunk("IDAT", packed) +
         png_chunk("IEND", "");
}

TEST(Image, OfSixteenBitsGivesTheHigherEight) {
  using Bytes = std::vector<std::uint8_t>;
  const std::string grey = png_of_two(16, 0, "\x12\xff\xfe\x80");
  EXPECT_EQ(decode_image(testing::bytes_of(grey), "it.png").pixels, (Bytes{0x12, 0xfe}))
      << "not rounded";
  const std::string colours = png_of_two(16, 2, "\x01\xff\x02\xff\x03\xff\x7f\xff\x80\x01\xff\xff");
  EXPECT_EQ(decode_image(testing::bytes_of(colours), "it.png").pixels,
            (Bytes{0x01, 0x02, 0x03, 0x7f, 0x80, 0xff}));
  PictureReader reader;
  const RgbxView view = reader.decode(testing::bytes_of(colours), "it.png", true);
  EXPECT_EQ(Bytes(view.pixels, view.pixels + 3), (Bytes{0x01, 0x02, 0x03}));
  EXPECT_EQ(Bytes(view.pixels + 4, view.pixels + 7), (Bytes{0x7f, 0x80, 0xff}));
}

TEST(Image, WithATransparentColourHasAlpha) {
  const auto key = [](const std::string& colour) { return png_chunk("tRNS", colour); };
  const std::string grey = key(std::string("\0\x12", 2));
  expect_same(decode(png_of_two(8, 0, "\x12\x34", grey)), {2, 1, 2, {0x12, 0, 0x34, 255}});
  const std::string colour = key(std::string("\0\1\0\2\0\3", 6));
  expect_same(decode(png_of_two(8, 2, "\1\2\3\4\5\6", colour)),
              {2, 1, 4, {1, 2, 3, 0, 4, 5, 6, 255}});
  const std::string wide = key("\x12\x34");
  expect_same(decode(png_of_two(16, 0, "\x12\x34\x12\x35", wide)), {2, 1, 2, {0x12, 0, 0x12, 255}});
}

TEST(Image, IsKnownByTheEndOfItsName) {
  for (const char* name :
       {"a.png", "b/c.JPG", "x.jpeg", "x.jfif", "w.WebP", "y.Bmp", "z.pgm", "z.ppm"}) {
    EXPECT_TRUE(has_image_name(name)) << name;
  }
  for (const char* name : {"a.gif", "png", ".png", "a.png.txt", "a"}) {
    EXPECT_FALSE(has_image_name(name)) << name;
  }
  EXPECT_EQ(foreign_ending("a/b.HEIC"), ".heic");
  EXPECT_EQ(foreign_ending("a.gif"), ".gif");
  for (const char* name : {"a.png", "a.jfif", ".heic", "heic", "a.txt"}) {
    EXPECT_FALSE(foreign_ending(name).has_value()) << name;
  }
}

}  // namespace
}  // namespace ringlet::data
