// WebP, as far as libwebp is here.
#include "data/images/webp.h"

#include <gtest/gtest.h>

#include "base/data_error.h"
#include "data/image_folder.h"
#include "data/images/decode_bytes.h"
#include "data/images/picture_reader.h"
#include "tests/support/picture_folder.h"
#include "tests/support/webp.h"

namespace ringlet::data {
namespace {

using testing::bytes_of;
using testing::lossless_webp;
using testing::lossy_webp;
using testing::says;

class Webp : public ::testing::Test {
 protected:
  void SetUp() override {
    if (!reads_webp()) GTEST_SKIP() << "libwebp7 is not installed";
  }
  static std::string error(const std::string& file, const ImageLimits& limits = {}) {
    PictureReader reader;
    const std::string message =
        testing::message_of<DataError>([&] { reader.decode(bytes_of(file), "it", true, limits); });
    EXPECT_EQ(message,
              testing::message_of<DataError>([&] { decode_image(bytes_of(file), "it", limits); }));
    return message;
  }
};

TEST_F(Webp, IsDecoded) {
  const Image image = decode_image(bytes_of(lossless_webp()), "it");
  EXPECT_EQ(image.width, 4);
  EXPECT_EQ(image.height, 3);
  EXPECT_EQ(image.channels, 3);
  std::vector<std::uint8_t> expected;
  for (int i = 0; i < 3 * 4 * 3; ++i) expected.push_back(static_cast<std::uint8_t>(i / 3 % 4 * 40));
  EXPECT_EQ(image.pixels, expected);
  const Image lossy = decode_image(bytes_of(lossy_webp()), "it");
  ASSERT_EQ(lossy.pixels.size(), expected.size());
  for (std::size_t i = 0; i < expected.size(); ++i) {
    EXPECT_NEAR(lossy.pixels[i], expected[i], 40) << i;
  }
}

TEST_F(Webp, IsReadForTrainingWithoutItsAlpha) {
  PictureReader reader;
  const RgbxView view = reader.decode(bytes_of(lossless_webp()), "it", true);
  EXPECT_EQ(view.width, 4);
  EXPECT_EQ(view.row_bytes, 16);
  for (int i = 0; i < 12; ++i) {
    for (int c = 0; c < 3; ++c) EXPECT_EQ(view.pixels[4 * i + c], i % 4 * 40);
  }
  EXPECT_EQ(decode_image(bytes_of(testing::transparent_webp()), "it").channels, 4);
  EXPECT_EQ(reader.decode(bytes_of(testing::transparent_webp()), "it", true).width, 1);
}

TEST_F(Webp, ThatIsDamagedOrAnimatedOrTooLargeIsRefused) {
  const std::string file = lossless_webp();
  for (std::size_t cut = 13; cut < file.size(); ++cut) {
    EXPECT_TRUE(says(error(file.substr(0, cut)), {"it: ", "WebP file is cut off or damaged"}));
  }
  std::string odd = file;
  odd[20] = 'x';  // where a lossless picture's signature is
  EXPECT_TRUE(says(error(odd), {"it: ", "damaged"}));
  EXPECT_TRUE(says(error(testing::animated_webp()), {"it: ", "is an animated WebP", "a frame"}));
  EXPECT_TRUE(says(error(file, {.side = 3}), {"4 x 3 pixels", "make it smaller"}));
  EXPECT_EQ(decode_bytes(ImageFormat::webp, bytes_of(file), 1000, 3), 10'000 + file.size());
}

TEST_F(Webp, TakesNoMoreMemoryThanThereIs) {
  std::string wide = lossless_webp();  // 16384 x 16384
  wide.replace(21, 4, std::string("\xff\xff\xff\x0f", 4));
  EXPECT_TRUE(says(error(wide, {.pixels = 1 << 30, .memory = std::uint64_t{100} << 20}),
                   {"to decode", "100 MiB of memory are free"}));
}

TEST_F(Webp, IsAPictureOfAFolderUnderAnyEnding) {
  const testing::TemporaryDirectory folder;
  testing::write_picture_folder(folder.path());
  testing::write_file(folder / "train/red/a.webp", lossless_webp());
  testing::write_file(folder / "train/red/b.jpg", lossy_webp());
  testing::write_file(folder / "train/red/c.jfif",
                      testing::as_jpeg(testing::gradient_image(9, 9, 3)));
  const Splits splits = load_image_folder(folder.path(), {.image_size = 3});
  EXPECT_EQ(splits.train->size(), 18);
  EXPECT_TRUE(splits.notes.empty());
  splits.train->look_at_samples();
  for (std::int64_t i = 15; i < 18; ++i) EXPECT_EQ(splits.train->image(i).size(), 27U);
  testing::write_file(folder / "train/red/a.webp", testing::animated_webp());
  EXPECT_TRUE(says(testing::message_of<DataError>([&] { splits.train->look_at_samples(); }),
                   {"a.webp", "animated"}));
}

TEST(WebpFormat, IsKnownByItsFirstBytes) {
  EXPECT_EQ(image_format(bytes_of(lossy_webp())), ImageFormat::webp);
  EXPECT_EQ(image_format(bytes_of(lossy_webp().substr(0, 11))), ImageFormat::unknown);
  EXPECT_EQ(image_format(bytes_of("RIFF....WAVEfmt ")), ImageFormat::unknown);
  EXPECT_TRUE(is_animated_webp(bytes_of(testing::animated_webp())));
  EXPECT_FALSE(is_animated_webp(bytes_of(lossy_webp())));
}

}  // namespace
}  // namespace ringlet::data
