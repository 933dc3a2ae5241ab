// Orientation: pictures of a camera that was held otherwise come out upright.
#include "data/images/exif.h"

#include <gtest/gtest.h>

#include <cstddef>
#include <utility>

#include "tests/support/exif.h"
#include "tests/support/pictures.h"

namespace ringlet::data {
namespace {

using testing::as_jpeg;
using testing::bytes_of;
using testing::gradient_image;
using testing::with_orientation;

/// The letters of a picture of one channel, row by row.
std::string rows_of(const Image& image) {
  std::string rows;
  for (std::size_t i = 0; i < image.pixels.size(); ++i) {
    if (i > 0 && i % static_cast<std::size_t>(image.width) == 0) rows += '/';
    rows += static_cast<char>(image.pixels[i]);
  }
  return rows;
}

TEST(Exif, EachOrientationIsTurnedUpright) {
  // As it was seen: "abc/def". How a camera stores that, by what row and column 0 are (Exif 4.6.4).
  const std::pair<int, const char*> stored[] = {{1, "abc/def"},    // top, left
                                                {2, "cba/fed"},    // top, right
                                                {3, "fed/cba"},    // bottom, right
                                                {4, "def/abc"},    // bottom, left
                                                {5, "ad/be/cf"},   // left, top
                                                {6, "cf/be/ad"},   // right, top
                                                {7, "fc/eb/da"},   // right, bottom
                                                {8, "da/eb/fc"}};  // left, bottom
  for (const auto& [orientation, rows] : stored) {
    Image image{.channels = 1, .pixels = {}};
    for (const char letter : std::string(rows)) {
      if (letter != '/') image.pixels.push_back(static_cast<std::uint8_t>(letter));
    }
    image.width = orientation < 5 ? 3 : 2;
    image.height = orientation < 5 ? 2 : 3;
    EXPECT_EQ(rows_of(upright(image, orientation)), "abc/def") << orientation;
  }
}

TEST(Exif, AJpegIsTurnedWholePixelsTogether) {
  const std::string plain = as_jpeg(gradient_image(24, 16, 3));
  const Image stored = decode_image(bytes_of(plain), "plain.jpg");
  for (int orientation = 1; orientation <= 8; ++orientation) {
    for (const auto& [big_endian, bytes] :
         {std::pair{true, 2}, {false, 2}, {true, 4}, {false, 4}}) {
      const std::string file =
          with_orientation(plain, orientation, big_endian, static_cast<std::size_t>(bytes));
      const Image image = decode_image(bytes_of(file), "turned.jpg");
      EXPECT_EQ(image.orientation, orientation);
      EXPECT_EQ(image.width, orientation < 5 ? 24 : 16);
      EXPECT_TRUE(image.pixels == upright(stored, orientation).pixels) << orientation;
    }
  }
}

TEST(Exif, ThatMakesNoSenseIsPassedOver) {
  const std::string plain = as_jpeg(gradient_image(8, 8, 1));
  EXPECT_EQ(exif_orientation(bytes_of(plain)), 1);
  EXPECT_EQ(exif_orientation({}), 1);
  for (const int nonsense : {0, 9, 65535}) {
    EXPECT_EQ(exif_orientation(bytes_of(with_orientation(plain, nonsense, true))), 1);
  }
  EXPECT_EQ(exif_orientation(bytes_of(with_orientation(plain, 65536 + 6, true, 4))), 1);
  const std::string good = with_orientation(plain, 6, false);
  ASSERT_EQ(exif_orientation(bytes_of(good)), 6);
  const std::size_t tiff = good.find("II");
  for (const std::size_t at : {tiff, tiff + 2, tiff + 4, tiff - 6}) {  // order, 42, offset, name
    std::string broken = good;
    broken[at] = '\x7f';
    EXPECT_EQ(exif_orientation(bytes_of(broken)), 1) << at - tiff;
  }
  for (std::size_t size = 0; size < tiff + 38; ++size) {  // wherever it breaks off
    EXPECT_EQ(exif_orientation(bytes_of(good.substr(0, size))), 1) << size;
  }
}

}  // namespace
}  // namespace ringlet::data
