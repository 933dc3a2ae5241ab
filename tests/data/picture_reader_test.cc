// Pictures for training: three colours whatever the file has, from memory that is used again.
#include "data/images/picture_reader.h"

#include <gtest/gtest.h>

#include "base/data_error.h"
#include "data/images/exif.h"
#include "tests/support/counting_new.h"
#include "tests/support/exif.h"
#include "tests/support/files.h"
#include "tests/support/pictures.h"

namespace ringlet::data {
namespace {

using testing::as_jpeg;
using testing::as_png;
using testing::as_pnm;
using testing::bytes_of;
using testing::gradient_image;
using testing::says;
using testing::with_orientation;

/// Red, green and blue of each pixel.
std::vector<std::uint8_t> rgb_of(const RgbxView& view) {
  std::vector<std::uint8_t> rgb;
  for (int y = 0; y < view.height; ++y) {
    for (int x = 0; x < view.width; ++x) {
      const std::uint8_t* pixel = view.cropped({x, y, 1, 1}).pixels;
      rgb.insert(rgb.end(), pixel, pixel + 3);
    }
  }
  return rgb;
}

std::vector<std::uint8_t> rgb_of(const Image& image) {
  std::vector<std::uint8_t> rgb;
  const auto channels = static_cast<std::size_t>(image.channels);
  for (std::size_t i = 0; i < image.pixels.size(); i += channels) {
    for (std::size_t c = 0; c < 3; ++c) rgb.push_back(image.pixels[i + (channels < 3 ? 0 : c)]);
  }
  return rgb;
}

TEST(PictureReader, MakesRedGreenAndBlueOfEveryFile) {
  PictureReader reader;
  for (int again = 0; again < 2; ++again) {  // the second time in memory of its own
    for (const int channels : {1, 2, 3, 4}) {
      const Image image = gradient_image(13, 7, channels);
      const RgbxView view = reader.decode(bytes_of(as_png(image)), "a.png", true);
      EXPECT_EQ(view.width, 13);
      EXPECT_EQ(view.height, 7);
      EXPECT_EQ(rgb_of(view), rgb_of(image)) << channels;
    }
    const Image colours = gradient_image(13, 7, 3);
    EXPECT_EQ(rgb_of(reader.decode(bytes_of(as_pnm(colours)), "a.ppm", true)), rgb_of(colours));
  }
}

TEST(PictureReader, GivesAJpegsPixelsAsTheyAreForLookingAt) {
  const std::string file = as_jpeg(gradient_image(40, 24, 3));
  PictureReader reader;
  EXPECT_EQ(rgb_of(reader.decode(bytes_of(file), "a.jpg", true)),
            rgb_of(decode_image(bytes_of(file), "a.jpg")));
}

TEST(PictureReader, TurnsAJpegWhereTold) {
  const std::string plain = as_jpeg(gradient_image(24, 16, 3));
  const Image stored = decode_image(bytes_of(plain), "plain.jpg");
  PictureReader reader;
  for (int orientation = 1; orientation <= 8; ++orientation) {
    const std::string file = with_orientation(plain, orientation, true);
    EXPECT_EQ(rgb_of(reader.decode(bytes_of(file), "a.jpg", true)),
              rgb_of(upright(stored, orientation)));
    EXPECT_EQ(rgb_of(reader.decode(bytes_of(file), "a.jpg", false)), rgb_of(stored));
  }
}

TEST(PictureReader, NamesAFileThatIsBroken) {
  const testing::TemporaryDirectory folder;
  const std::string file = as_jpeg(gradient_image(40, 24, 3));
  testing::write_file(folder / "half.jpg", file.substr(0, file.size() / 2));
  PictureReader reader;
  EXPECT_TRUE(says(testing::message_of<DataError>([&] { reader.load(folder / "half.jpg", true); }),
                   {"half.jpg", "cut off or damaged"}));
  testing::write_file(folder / "whole.jpg", file);
  EXPECT_EQ(reader.load(folder / "whole.jpg", true).width, 40);
}

TEST(PictureReader, AllocatesNothingOnceItHasSeenTheLargest) {
  const std::string jpeg = as_jpeg(gradient_image(64, 48, 3)),
                    png = as_png(gradient_image(50, 50, 3));
  PictureReader reader;
  const auto read_both = [&] {
    reader.decode(bytes_of(jpeg), "a.jpg", true);
    reader.decode(bytes_of(png), "a.png", true);
  };
  for (int i = 0; i < 4; ++i) read_both();
  const std::string a = as_jpeg(gradient_image(64, 48, 3)), b = as_png(gradient_image(50, 50, 3));
  const std::int64_t before = test::operator_new_calls_of_this_thread();
  for (int i = 0; i < 3; ++i) {
    reader.decode(bytes_of(a), "a.jpg", true);
    reader.decode(bytes_of(b), "a.png", true);
  }
  EXPECT_EQ(test::operator_new_calls_of_this_thread(), before);
}

}  // namespace
}  // namespace ringlet::data
