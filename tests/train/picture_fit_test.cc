// What size and model a folder of pictures gets where nobody names them.
#include "train/recipe/picture_fit.h"

#include <gtest/gtest.h>

#include "data/picture_sides.h"
#include "tests/support/picture_folder.h"

namespace ringlet::train {
namespace {

std::string fit(int median, std::int64_t pictures) {
  const PictureFit fit = fit_to_pictures(median, pictures);
  return fit.model + " " + std::to_string(fit.image_size);
}

TEST(PictureFit, KeepsSmallPicturesAsTheyAre) {
  EXPECT_EQ(fit(28, 100), "resnet20 28");
  EXPECT_EQ(fit(32, 50'000), "resnet20 32");
  EXPECT_EQ(fit(64, 50'000), "resnet20 64");
  EXPECT_EQ(fit(3, 100), "resnet20 8") << "a model needs some pixels";
  EXPECT_EQ(size_for_weights(32), 32);
}

TEST(PictureFit, MakesLargeOnesAsLargeAsThereAreManyOfThem) {
  EXPECT_EQ(fit(65, 50'000), "resnet18 128");
  EXPECT_EQ(fit(255, 50'000), "resnet18 128");
  EXPECT_EQ(fit(256, 4'999), "resnet18 128");
  EXPECT_EQ(fit(256, 5'000), "resnet18 224");
  EXPECT_EQ(size_for_weights(65), 224);
}

TEST(PictureFit, GoesByTheHeadersOfThePicturesToTrainOn) {
  const testing::TemporaryDirectory folder;
  testing::write_picture_folder(folder.path());  // shorter sides of 20, 25, 30, 20 and 25 pixels
  const data::PictureSides sides = data::measure_sides(folder.path());
  EXPECT_EQ(sides.pictures, 15);
  EXPECT_EQ(sides.known, 15);
  EXPECT_EQ(sides.smallest, 20);
  EXPECT_EQ(sides.median, 25);
  EXPECT_EQ(sides.largest, 30);
  testing::write_file(folder / "train/red/1.png", "broken");
  testing::write_file(folder / "test/red/1.png", testing::as_png(testing::gradient_image(9, 9, 3)));
  const data::PictureSides others = data::measure_sides(folder.path());
  EXPECT_EQ(others.pictures, 15);
  EXPECT_EQ(others.known, 14);
  EXPECT_EQ(others.smallest, 20);
}

}  // namespace
}  // namespace ringlet::train
