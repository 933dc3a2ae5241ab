// What is known of pictures before they are decoded, and that nobody has to wait for the last one.
#include <gtest/gtest.h>

#include <atomic>
#include <string>

#include "base/data_error.h"
#include "data/image_folder.h"
#include "data/in_parallel.h"
#include "data/kept_samples.h"
#include "data/open_dataset.h"
#include "tests/support/picture_folder.h"

namespace ringlet::data {
namespace {

namespace fs = std::filesystem;
using testing::as_bmp;
using testing::as_jpeg;
using testing::as_png;
using testing::as_pnm;
using testing::gradient_image;
using testing::message_of;
using testing::says;
using testing::write_file;

/// What a look at a file of these bytes tells; empty where it finds nothing.
std::string found_in(const std::string& bytes) {
  const testing::TemporaryDirectory folder;
  write_file(folder / "picture", bytes);
  std::vector<std::uint8_t> memory;
  try {
    look_at_picture(folder / "picture", memory);
  } catch (const DataError& error) {
    return error.what();
  }
  return {};
}

TEST(Look, FindsNothingInWholePictures) {
  for (const int side : {9, 400}) {  // of the larger ones the beginning is read
    const Image image = gradient_image(side, side, 3);
    for (const std::string& bytes : {as_png(image), as_jpeg(image), as_bmp(image), as_pnm(image)}) {
      EXPECT_EQ(found_in(bytes), "");
    }
  }
  // A JPEG whose header stands behind more notes than are read at first.
  const std::string jpeg = as_jpeg(gradient_image(400, 400, 3));
  const std::string note = "\xff\xee\xff\xff" + std::string(65533, 'n');
  EXPECT_EQ(found_in(jpeg.substr(0, 2) + note + note + jpeg.substr(2)), "");
}

TEST(Look, FindsWhatTheBeginningTells) {
  const std::string png = as_png(gradient_image(9, 9, 3));
  EXPECT_TRUE(says(found_in(""), {"picture", "is empty"}));
  EXPECT_TRUE(says(found_in("no picture"), {"is no image that can be read"}));
  EXPECT_TRUE(says(found_in(png.substr(0, png.size() - 20)), {"PNG", "cut off or damaged"}));
  const std::string jpeg = as_jpeg(gradient_image(9, 9, 3));
  EXPECT_TRUE(says(found_in(jpeg.substr(0, jpeg.size() / 2)), {"JPEG", "cut off or damaged"}));
  std::string wide = png;
  wide[16] = '\x01';  // the width's highest byte
  EXPECT_TRUE(says(found_in(wide), {"cut off or damaged"}));
  EXPECT_TRUE(says(found_in("P6 30000 2 255\n"), {"30000 x 2 pixels", "make it smaller"}));
  const std::string ppm = as_pnm(gradient_image(400, 400, 3));
  EXPECT_TRUE(says(found_in(ppm.substr(0, ppm.size() - 1)), {"bytes are missing at its end"}));
}

TEST(Look, AtAFolderNamesTheFirstAndHowMany) {
  const testing::TemporaryDirectory folder;
  testing::write_picture_folder(folder.path());
  const auto load = [&] { return load_image_folder(folder.path(), {.image_size = 16}); };
  load().train->look_at_samples();
  load().test->look_at_samples();
  write_file(folder / "test/green/1.png", "");
  write_file(folder / "test/red/0.png", "no picture");
  EXPECT_TRUE(says(message_of<DataError>([&] { load().test->look_at_samples(); }),
                   {"test/green/1.png", "is empty", "2 of 6", "--skip-broken"}));
}

TEST(Stop, EndsWhatReadsMany) {
  const testing::TemporaryDirectory folder;
  testing::write_picture_folder(folder.path());
  std::atomic<bool> stop{false};
  const StopRequest asked = [&stop] { return stop.load(); };
  const Splits splits =
      load_image_folder(folder.path(), {.image_size = 16, .stop_requested = asked});
  stop = true;
  EXPECT_THROW(splits.train->hash(), Stopped);
  EXPECT_THROW(splits.train->statistics(), Stopped);
  EXPECT_THROW(splits.train->look_at_samples(), Stopped);
  EXPECT_THROW(keep_all(*splits.train, 2), Stopped);
  EXPECT_THROW(load_image_folder(folder.path(), {.skip_broken = true, .stop_requested = asked}),
               Stopped);
  EXPECT_THROW(open_dataset("synthetic", {.stop_requested = asked}), Stopped);
  stop = false;
  EXPECT_NE(splits.train->hash(), 0U);
  EXPECT_EQ(splits.train->statistics().size(), 3U);
}

TEST(Stop, IsAskedBetweenAnyTwo) {
  std::atomic<int> done{0};
  EXPECT_THROW(in_parallel(
                   1000, 2, [&](std::int64_t) { ++done; }, [&] { return done >= 10; }),
               Stopped);
  EXPECT_GE(done, 10);
  EXPECT_LE(done, 12);
}

}  // namespace
}  // namespace ringlet::data
